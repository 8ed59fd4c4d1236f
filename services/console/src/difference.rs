//! Difference in git's format as data: files, hunks and numbered lines.
//!
//! The lines of a hunk are counted by its header, so a changed line that looks like a header stays a line.

use std::borrow::Cow;

use domain::text::unquote_path;

/// A parsed difference.
#[derive(Debug, Default)]
pub(crate) struct ChangeDifference<'a> {
    pub(crate) files: Vec<FileDifference<'a>>,
    /// False if the text ends early or contains other text.
    pub(crate) is_complete: bool,
}

/// A changed file.
#[derive(Debug, Default)]
pub(crate) struct FileDifference<'a> {
    /// Path after the change, or before it for a removed file.
    pub(crate) path: Cow<'a, str>,
    /// Remark instead of or above the lines, such as `new file`; empty: none.
    pub(crate) note: String,
    pub(crate) hunks: Vec<DiffHunk<'a>>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

/// Consecutive lines of a file.
#[derive(Debug)]
pub(crate) struct DiffHunk<'a> {
    /// The header with positions and context.
    pub(crate) header: &'a str,
    pub(crate) lines: Vec<DiffLine<'a>>,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiffLine<'a> {
    pub(crate) kind: LineKind,
    /// Number of the line before the change; absent for an added line.
    pub(crate) old: Option<u32>,
    /// Number of the line after the change; absent for a removed line.
    pub(crate) new: Option<u32>,
    pub(crate) text: &'a str,
}

/// Role of a line in the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Context,
    Added,
    Removed,
}

impl LineKind {
    /// The mark in front of the line, which has its meaning without color.
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Context => " ",
            Self::Added => "+",
            Self::Removed => "-",
        }
    }
}

/// Numbers of the next lines, and the numbers of remaining lines of the hunk.
#[derive(Clone, Copy, Debug, Default)]
struct HunkRest {
    old: u32,
    new: u32,
    old_left: u32,
    new_left: u32,
}

/// Parses a difference in git's format.
pub(crate) fn parse_difference(text: &str) -> ChangeDifference<'_> {
    let mut change = ChangeDifference {
        files: Vec::new(),
        is_complete: true,
    };
    let mut rest = HunkRest::default();
    for line in text.lines() {
        if rest.has_lines() {
            if let Some(file) = change.files.last_mut()
                && file.push_line(line, &mut rest)
            {
                continue;
            }
            // The hunk ended early, so the line is the next header or a remark about omitted text.
            change.is_complete = false;
            rest = HunkRest::default();
        }
        if let Some(paths) = line.strip_prefix("diff --git ") {
            change.files.push(FileDifference {
                path: parse_paths(paths),
                ..FileDifference::default()
            });
        } else if let Some(file) = change.files.last_mut() {
            match parse_hunk_header(line) {
                Some(begun) => {
                    rest = begun;
                    let (header, lines) = (line, Vec::new());
                    file.hunks.push(DiffHunk { header, lines });
                }
                None => change.is_complete &= file.apply_header(line),
            }
        } else {
            change.is_complete = false;
        }
    }
    change.is_complete &= !rest.has_lines();
    change
}

impl HunkRest {
    const fn has_lines(self) -> bool {
        self.old_left > 0 || self.new_left > 0
    }
}

impl<'a> FileDifference<'a> {
    /// Adds a line to the last hunk. Returns false for a line that does not belong to it.
    fn push_line(&mut self, line: &'a str, rest: &mut HunkRest) -> bool {
        let (kind, text) = match line.chars().next() {
            // An editor or a mail program may have removed the only space.
            None => (LineKind::Context, line),
            Some(' ') => (LineKind::Context, &line[1..]),
            Some('+') => (LineKind::Added, &line[1..]),
            Some('-') => (LineKind::Removed, &line[1..]),
            Some('\\') => return true,
            Some(_) => return false,
        };
        let (is_old, is_new) = (kind != LineKind::Added, kind != LineKind::Removed);
        if (is_old && rest.old_left == 0) || (is_new && rest.new_left == 0) {
            return false;
        }
        let Some(hunk) = self.hunks.last_mut() else {
            return false;
        };
        hunk.lines.push(DiffLine {
            kind,
            old: is_old.then_some(rest.old),
            new: is_new.then_some(rest.new),
            text,
        });
        if is_old {
            rest.old = rest.old.saturating_add(1);
            rest.old_left -= 1;
        }
        if is_new {
            rest.new = rest.new.saturating_add(1);
            rest.new_left -= 1;
        }
        self.added += usize::from(kind == LineKind::Added);
        self.removed += usize::from(kind == LineKind::Removed);
        true
    }

    /// Applies a line between hunks. Returns false for a line that git does not write there.
    fn apply_header(&mut self, line: &'a str) -> bool {
        if let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
            // The path after the change comes last and wins, unless the file is removed.
            if path != "/dev/null" {
                self.path = parse_side_path(path);
            }
        } else if line.starts_with("new file mode ") {
            self.note = "new file".to_owned();
        } else if line.starts_with("deleted file mode ") {
            self.note = "removed file".to_owned();
        } else if let Some(from) = line.strip_prefix("rename from ") {
            self.note = format!("renamed from {}", unquote_path(from));
        } else if let Some(to) = line.strip_prefix("rename to ") {
            self.path = unquote_path(to);
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            self.note = format!("new mode {mode}");
        } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
            self.note = "binary file".to_owned();
        } else {
            return ["index ", "old mode ", "similarity index ", "\\ "]
                .iter()
                .any(|known| line.starts_with(known));
        }
        true
    }
}

/// Returns the path of `a/PATH b/PATH`.
fn parse_paths(paths: &str) -> Cow<'_, str> {
    // Both halves have the same length unless the file was renamed, and then other headers name it.
    let half = paths.len() / 2;
    let second = paths.get(half + 1..).unwrap_or(paths);
    parse_side_path(second)
}

/// Returns the path of `a/PATH` or `b/PATH`. A tab may follow a path with spaces.
fn parse_side_path(path: &str) -> Cow<'_, str> {
    match unquote_path(path.trim_end_matches('\t')) {
        Cow::Borrowed(path) => Cow::Borrowed(strip_side(path)),
        Cow::Owned(path) => Cow::Owned(strip_side(&path).to_owned()),
    }
}

/// Returns the path without the side, which git writes in front of it.
fn strip_side(path: &str) -> &str {
    let plain = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
    plain.unwrap_or(path)
}

/// Parses `@@ -1,2 +1,3 @@`; `None` for another line.
fn parse_hunk_header(line: &str) -> Option<HunkRest> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let parse_range = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old, old_left), (new, new_left)) = (parse_range(old)?, parse_range(new)?);
    Some(HunkRest {
        old,
        new,
        old_left,
        new_left,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGE: &str = "diff --git a/shop/cart.py b/shop/cart.py\nindex 1..2 100644\n--- a/shop/cart.py\n+++ \
                          b/shop/cart.py\n@@ -3,3 +3,4 @@ def total(items):\n \n-    return 0\n+    total = 0\n+    return total\n \
                          # end\ndiff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ \
                          /dev/null\n@@ -1 +0,0 @@\n--- a\n\\ No newline at end of file\n";

    #[test]
    fn files_have_numbered_lines_and_sums() {
        let change = parse_difference(CHANGE);
        assert!(change.is_complete);
        let sums: Vec<_> = change
            .files
            .iter()
            .map(|file| (&*file.path, file.added, file.removed))
            .collect();
        assert_eq!(sums, [("shop/cart.py", 2, 1), ("old.txt", 0, 1)]);
        let lines = &change.files[0].hunks[0].lines;
        let numbers: Vec<_> = lines
            .iter()
            .map(|line| (line.kind.mark(), line.old, line.new))
            .collect();
        assert_eq!(
            numbers,
            [
                (" ", Some(3), Some(3)),
                ("-", Some(4), None),
                ("+", None, Some(4)),
                ("+", None, Some(5)),
                (" ", Some(5), Some(6))
            ]
        );
        assert_eq!(change.files[1].note, "removed file");
        // A removed line "-- a" looks like the header of a file.
        assert_eq!(change.files[1].hunks[0].lines[0].text, "-- a");
    }

    #[test]
    fn early_end_and_remark_are_incomplete() {
        let (start, _) = CHANGE.split_once("+    return total").unwrap();
        let change = parse_difference(start);
        assert!(!change.is_complete && change.files[0].added == 1, "{change:?}");
        let remark = format!("{start}[the rest is left out]\n");
        let change = parse_difference(&remark);
        assert!(!change.is_complete && change.files.len() == 1, "{change:?}");
        assert!(!parse_difference("1 file(s) changed\n").is_complete);
        assert!(parse_difference("").is_complete);
    }

    #[test]
    fn renamed_and_binary_files_have_notes() {
        let change = parse_difference(
            "diff --git a/a.py b/b/c.py\nsimilarity index 100%\nrename from a.py\nrename to b/c.py\ndiff --git a/x y.png \
             b/x y.png\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/x y.png differ\n",
        );
        assert!(change.is_complete, "{change:?}");
        let notes: Vec<_> = change
            .files
            .iter()
            .map(|file| (&*file.path, file.note.as_str()))
            .collect();
        assert_eq!(
            notes,
            [("b/c.py", "renamed from a.py"), ("x y.png", "binary file")]
        );
    }

    #[test]
    fn quoted_paths_have_their_characters() {
        let change = parse_difference(concat!(
            r#"diff --git "a/s/f\303\274.py" "b/s/f\303\274.py""#,
            "\nindex 1..2 100644\n",
            r#"--- "a/s/f\303\274.py""#,
            "\n",
            r#"+++ "b/s/f\303\274.py""#,
            "\n@@ -1 +1 @@\n-a\n+b\n",
            r#"diff --git "a/q\"\t\\.txt" "b/\303\244.txt""#,
            "\nsimilarity index 100%\n",
            r#"rename from "q\"\t\\.txt""#,
            "\n",
            r#"rename to "\303\244.txt""#,
            "\n",
        ));
        assert!(change.is_complete, "{change:?}");
        assert_eq!(change.files[0].path, "s/fü.py");
        assert_eq!(change.files[1].path, "ä.txt");
        assert_eq!(change.files[1].note, "renamed from q\"\t\\.txt");
    }
}
