//! Parser of unified diffs.

use domain::text::unquote_path;

/// A patch in both formats, for a model that sent none.
pub(super) const EXAMPLE: &str = "Examples:\n\
    {\"patch\": \"--- a/src/cart.py\\n+++ b/src/cart.py\\n@@ -1,2 +1,2 @@\\n def total(items):\\n-    return 0\\n+    return sum(items)\\n\"}\n\
    {\"patch\": \"*** Begin Patch\\n*** Update File: src/cart.py\\n@@ def total(items):\\n-    return 0\\n+    return sum(items)\\n*** End Patch\"}";

/// Path in a diff for a missing file.
pub(super) const NOWHERE: &str = "/dev/null";

/// Changes of one file in a diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) hunks: Vec<PatchHunk>,
}

/// A hunk of a diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PatchHunk {
    /// First line in the old file, from 1; `None` when the header has no numbers.
    pub(super) start: Option<usize>,
    /// Number of lines in the old and the new file, from the header.
    counts: Option<(usize, usize)>,
    /// Text after the numbers: usually the enclosing function.
    pub(super) heading: String,
    pub(super) lines: Vec<HunkLine>,
    /// Two flags: the patch marks the last line of the old file, and of the new file, as lacking a line end.
    pub(super) open: (bool, bool),
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HunkLine {
    Context(String),
    /// An empty line without the leading space: context, or a separator between parts of a patch.
    Blank,
    Removed(String),
    Added(String),
}

impl PatchHunk {
    /// Parses the rest of a `@@` line: ` -12,3 +12,4 @@ heading`, or only a heading.
    pub(super) fn opened(text: &str) -> Self {
        let text = text.trim_start();
        let (numbers, heading) = match text.split_once("@@") {
            Some((numbers, heading)) => (numbers, heading),
            None if text.starts_with('-') => (text, ""),
            None => ("", text),
        };
        let range = |sign: char| -> Option<(usize, usize)> {
            let word = numbers
                .split_whitespace()
                .find_map(|word| word.strip_prefix(sign))?;
            let (start, count) = word.split_once(',').unwrap_or((word, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        let (old, new) = (range('-'), range('+'));
        Self {
            start: old.map(|(start, _)| start),
            counts: old.zip(new).map(|((_, old), (_, new))| (old, new)),
            heading: heading.trim().to_owned(),
            ..Self::default()
        }
    }

    /// Returns the lines of the old file.
    pub(super) fn old(&self) -> Vec<String> {
        let old = self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(text) | HunkLine::Removed(text) => Some(text.clone()),
            HunkLine::Blank => Some(String::new()),
            HunkLine::Added(_) => None,
        });
        old.collect()
    }

    /// Returns the hunk without blank lines at its end; `None` when it has none.
    pub(super) fn trimmed(&self) -> Option<Self> {
        let blank = self
            .lines
            .iter()
            .rev()
            .take_while(|line| **line == HunkLine::Blank)
            .count();
        let mut trimmed = self.clone();
        trimmed.lines.truncate(self.lines.len() - blank);
        (blank > 0).then_some(trimmed)
    }

    fn has_all(&self) -> bool {
        let (old, new) = self.sizes();
        self.counts
            .is_none_or(|(wanted_old, wanted_new)| old >= wanted_old && new >= wanted_new)
    }

    fn sizes(&self) -> (usize, usize) {
        let is_old = |line: &&HunkLine| !matches!(line, HunkLine::Added(_));
        let is_new = |line: &&HunkLine| !matches!(line, HunkLine::Removed(_));
        (
            self.lines.iter().filter(is_old).count(),
            self.lines.iter().filter(is_new).count(),
        )
    }

    /// Adds a line of the patch.
    pub(super) fn add(&mut self, line: &str) -> Result<(), String> {
        let rest = || line.get(1..).unwrap_or_default().to_owned();
        match line.as_bytes().first() {
            Some(b'-') => self.lines.push(HunkLine::Removed(rest())),
            Some(b'+') => self.lines.push(HunkLine::Added(rest())),
            Some(b' ') => self.lines.push(HunkLine::Context(rest())),
            None => self.lines.push(HunkLine::Blank),
            // `\ No newline at end of file` refers to the line before it; after a context line, to both
            // files.
            Some(b'\\') => match self.lines.last() {
                Some(HunkLine::Removed(_)) => self.open.0 = true,
                Some(HunkLine::Added(_)) => self.open.1 = true,
                Some(HunkLine::Context(_) | HunkLine::Blank) | None => self.open = (true, true),
            },
            // A context line with a tab that lost its leading space. It matches as it is or not at all.
            Some(b'\t') => self.lines.push(HunkLine::Context(line.to_owned())),
            Some(_) => {
                return Err(format!(
                    "The line {:?} of a hunk begins with neither a blank, '-' nor '+'.",
                    domain::text::truncate_bytes(line, 80)
                ));
            }
        }
        Ok(())
    }
}

/// Parses a patch into the changes of its files.
///
/// # Errors
/// Returns a text for the model.
pub(super) fn parse_patch(text: &str) -> Result<Vec<FilePatch>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut files, mut in_hunk): (Vec<FilePatch>, bool) = (Vec::new(), false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let hunk = files
            .last()
            .and_then(|file| file.hunks.last())
            .filter(|_| in_hunk);
        let old = line.strip_prefix("--- ").filter(|old| is_header(old, hunk));
        let new = lines.peek().and_then(|next| next.strip_prefix("+++ "));
        if let (Some(old), Some(new)) = (old, new) {
            let (old, new) = (header_path(old), header_path(new));
            files.push(FilePatch {
                old,
                new,
                hunks: Vec::new(),
            });
            lines.next();
            in_hunk = false;
        } else if let (Some(numbers), Some(file)) = (line.strip_prefix("@@"), files.last_mut()) {
            file.hunks.push(PatchHunk::opened(numbers));
            in_hunk = true;
        // These lines end a hunk, whatever number of lines its header announced.
        } else if is_between(line) {
            refuse_other_changes(line)?;
            in_hunk = false;
        } else if let Some(hunk) = files
            .last_mut()
            .and_then(|file| file.hunks.last_mut())
            .filter(|_| in_hunk && !line.starts_with("```"))
        {
            hunk.add(line)?;
        } else {
            refuse_other_changes(line)?;
        }
    }
    let is_empty = |file: &FilePatch| file.hunks.is_empty() && file.new != NOWHERE && file.old != NOWHERE;
    if files.is_empty() || files.iter().any(is_empty) {
        return Err(format!(
            "The patch has no change. It needs --- a/path, +++ b/path and @@ hunks. {EXAMPLE}"
        ));
    }
    Ok(files)
}

/// Returns true when `--- ` begins a file. Inside an incomplete hunk it may be a removed line that begins
/// with `-- `.
fn is_header(old: &str, hunk: Option<&PatchHunk>) -> bool {
    let starts = ["a/", "\"a/", NOWHERE];
    hunk.is_none_or(PatchHunk::has_all) || starts.iter().any(|start| old.starts_with(start))
}

/// Returns true for a line that precedes the header of a file.
fn is_between(line: &str) -> bool {
    ["diff --git ", "Binary files ", "GIT binary patch", "index "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Refuses changes other than changes of lines.
fn refuse_other_changes(line: &str) -> Result<(), String> {
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    if starts(&["Binary files ", "GIT binary patch"]) {
        return Err("The patch has a binary file. Write it with run_command.".to_owned());
    }
    if starts(&["rename from ", "copy from "]) {
        return Err("The patch renames or copies a file. Do that with run_command (mv, cp).".to_owned());
    }
    if starts(&["old mode "]) {
        return Err("The patch changes the mode of a file. Do that with run_command (chmod).".to_owned());
    }
    Ok(())
}

/// Returns the path of a header without the quotes of git, `a/`, `b/`, and the time after a tab.
fn header_path(text: &str) -> String {
    let text = unquote_path(text.split('\t').next().unwrap_or(text).trim());
    let plain = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/"));
    plain.unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_like_removed_lines_stay_lines() {
        let files =
            parse_patch("--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1 @@\n--- old comment\n+++ 1;\n-x\n select 1\n")
                .unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].hunks[0].old(), ["-- old comment", "x", "select 1"]);
    }

    #[test]
    fn headers_are_read_with_numbers_or_without() {
        let hunk = PatchHunk::opened(" -12,3 +14 @@ def f():");
        assert_eq!((hunk.start, hunk.counts), (Some(12), Some((3, 1))));
        assert_eq!(hunk.heading, "def f():");
        assert_eq!(PatchHunk::opened(" def g():").heading, "def g():");
        assert_eq!(PatchHunk::opened("").start, None);
    }

    #[test]
    fn quoted_headers_have_plain_paths() {
        let first = "--- \"a/caf\\303\\251.py\"\n+++ \"b/caf\\303\\251.py\"\n@@ -1,9 +1,9 @@\n-a\n+b\n";
        let second = "--- \"a/say \\\"hi\\\".py\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        let files = parse_patch(&format!("{first}{second}")).unwrap();
        let paths: Vec<_> = files
            .iter()
            .map(|file| (file.old.as_str(), file.new.as_str()))
            .collect();
        let accented = "caf\u{e9}.py";
        assert_eq!(paths, [(accented, accented), ("say \"hi\".py", NOWHERE)]);
    }

    #[test]
    fn rename_and_binary_patches_are_refused() {
        let header = "diff --git a/x b/y\n";
        for (line, way) in [
            ("rename from x\nrename to y\n", "mv"),
            ("old mode 100644\nnew mode 100755\n", "chmod"),
            ("Binary files a/x and b/x differ\n", "run_command"),
        ] {
            let error =
                parse_patch(&format!("{header}{line}--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")).unwrap_err();
            assert!(error.contains(way), "{error}");
        }
        let error = parse_patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nThat is all.\n").unwrap_err();
        assert!(error.contains("That is all."), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([-+@ ]{0,3}[a-c/]{0,3}\n|--- a\n\\+\\+\\+ a\n|@@ -1 \\+1 @@\n){0,20}") {
            let _ = parse_patch(&text);
        }
    }
}
