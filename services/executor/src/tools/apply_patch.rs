//! `apply_patch`: a unified diff over any number of files, all or nothing.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Call, Reply, Run, Tool, parse,
    patch::{self, FilePatch, Hunk, Line, NOWHERE},
    syntax,
    text::{Lines, Match, Places, Readings, Splice, changes, nearest, numbered, places},
    text_of,
};
use crate::workspace::explain;

pub(super) const TOOL: Tool = Tool {
    name: "apply_patch",
    description: "Applies a unified diff (--- a/path, +++ b/path, @@ hunks with context) to any number of files; \
                  /dev/null as a path makes or deletes a file. Hunks are found by their lines, so line numbers need not \
                  be exact where the lines occur once. Either every hunk of every file applies or nothing changes. \
                  The answer shows the changed lines.",
    schema: super::schema::<Input>,
    read_only: false,
    run: Run::Blocking(run),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The unified diff
    patch: String,
    /// Keep the change even if a file can no longer be parsed
    #[serde(default)]
    force: bool,
}

/// What becomes of one file.
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// For the answer.
    shown: String,
}

fn run(call: &Call, input: Value) -> Result<Reply, String> {
    let input: Input = parse(input)?;
    let files = patch::read(&input.patch)?;
    let mut changes: Vec<Change> = Vec::new();
    let mut unchecked = String::new();
    for file in &files {
        let change = plan(call, file).map_err(|why| format!("{why} Nothing was changed."))?;
        if changes.iter().any(|other| other.path == change.path) {
            return Err(format!(
                "{} occurs twice in the patch. Put its hunks under one header.",
                change.path.display()
            ));
        }
        if let (Some(after), false) = (&change.after, input.force) {
            unchecked += &syntax::check(call, &change.path, change.before.as_deref(), after)?;
        }
        changes.push(change);
    }
    write(call, &changes)?;
    let shown: Vec<&str> = changes.iter().map(|change| change.shown.as_str()).collect();
    Ok(format!("{}{unchecked}", shown.concat()).into())
}

fn plan(call: &Call, file: &FilePatch) -> Result<Change, String> {
    if file.old != NOWHERE && file.new != NOWHERE && file.old != file.new {
        return Err(format!(
            "{} would be renamed. Rename it with run_command (mv).",
            file.old
        ));
    }
    let name = if file.new == NOWHERE { &file.old } else { &file.new };
    let path = if file.old == NOWHERE {
        call.workspace.path(name)?
    } else {
        call.workspace.existing(name)?
    };
    if path == Path::new("") {
        return Err("A file of the patch has no name.".to_owned());
    }
    if file.old == NOWHERE {
        return made(call, file, path);
    }
    let before = text_of(call, &path)?;
    let (old, named) = (Lines::of(&before), |why| format!("{}: {why}", path.display()));
    let mut new = old.clone();
    let notes = apply(&mut new, &file.hunks).map_err(named)?;
    let after = (file.new != NOWHERE).then(|| new.join());
    if after.is_none() && !file.hunks.is_empty() && !new.texts().is_empty() {
        return Err(named(
            "the patch deletes the file but removes only a part of its lines. Delete it with run_command (rm).".to_owned(),
        ));
    }
    if after.as_ref() == Some(&before) {
        return Err(named("the hunks change nothing.".to_owned()));
    }
    let shown = match &after {
        Some(_) => format!(
            "Patched {}. The changed lines now:\n{}{notes}",
            path.display(),
            changes(old.texts(), new.texts())
        ),
        None => format!("Deleted {}.\n", path.display()),
    };
    Ok(Change {
        path,
        before: Some(before),
        after,
        shown,
    })
}

/// A new file.
fn made(call: &Call, file: &FilePatch, path: PathBuf) -> Result<Change, String> {
    if call.workspace.root().stat(&path).ok().flatten().is_some() {
        return Err(format!("{} exists already.", path.display()));
    }
    let mut lines = Vec::new();
    for line in file
        .hunks
        .iter()
        .flat_map(|hunk| hunk.trimmed().unwrap_or_else(|| hunk.clone()).lines)
    {
        match line {
            Line::Added(text) => lines.push(text),
            Line::Blank => lines.push(String::new()),
            Line::Context(_) | Line::Removed(_) => {
                return Err(format!(
                    "{}: in the patch of a new file every line begins with '+'.",
                    path.display()
                ));
            }
        }
    }
    let is_open = file.hunks.last().is_some_and(|hunk| hunk.open.1);
    let end = if lines.is_empty() || is_open { "" } else { "\n" };
    let shown = format!("Wrote {} ({} lines).\n", path.display(), lines.len());
    Ok(Change {
        path,
        before: None,
        after: Some(lines.join("\n") + end),
        shown,
    })
}

/// Where a hunk goes, and what comes there.
struct Placed {
    splice: Splice,
    by: Match,
}

/// Applies hunks to the file as it is before the first of them; what the model should know about how.
fn apply(lines: &mut Lines, hunks: &[Hunk]) -> Result<&'static str, String> {
    let mut placed: Vec<Placed> = Vec::new();
    for (number, hunk) in hunks.iter().enumerate() {
        let place = place(lines, hunk).map_err(|why| format!("hunk {}: {why}", number + 1))?;
        placed.push(place);
    }
    placed.sort_by_key(|place| place.splice.at);
    let overlap = |pair: &[Placed]| pair[0].splice.at + pair[0].splice.count > pair[1].splice.at;
    if placed.windows(2).any(overlap) {
        return Err("two hunks change the same lines. Put them into one.".to_owned());
    }
    let is_loose = placed
        .iter()
        .any(|place| matches!(place.by, Match::Indentation | Match::Typography));
    for place in placed.into_iter().rev() {
        lines.splice(place.splice);
    }
    Ok(if is_loose {
        "[found with other white space or quotes than the patch has; check the lines above]\n"
    } else {
        ""
    })
}

fn place(lines: &Lines, hunk: &Hunk) -> Result<Placed, String> {
    if hunk.old().is_empty() {
        return insertion(lines, hunk);
    }
    let whole = places(lines.texts(), &hunk.old())?;
    // A blank line at a hunk's end is mostly the space to the next part of the patch.
    let trimmed = hunk.trimmed().filter(|_| whole.is_none());
    let (hunk, found) = match &trimmed {
        Some(trimmed) if trimmed.old().is_empty() => return insertion(lines, trimmed),
        Some(trimmed) => (trimmed, places(lines.texts(), &trimmed.old())?),
        None => (hunk, whole),
    };
    let found = found.ok_or_else(|| {
        let near = nearest(lines.texts(), &hunk.old());
        format!("its lines do not occur. {near}")
    })?;
    let at = the_one(lines, hunk, &found)?;
    let count = hunk.old().len();
    let reaches_end = at + count == lines.texts().len();
    Ok(Placed {
        splice: Splice {
            at,
            count,
            new: rewritten(lines, hunk, at, found.by)?,
            // Without a word about it the end of the file stays what it is.
            ends: (reaches_end && hunk.open != (false, false)).then_some(!hunk.open.1),
        },
        by: found.by,
    })
}

/// Lines without context: after the line that the numbers name.
fn insertion(lines: &Lines, hunk: &Hunk) -> Result<Placed, String> {
    let at = match hunk.start {
        Some(start) if start <= lines.texts().len() => start,
        None if lines.texts().is_empty() => 0,
        Some(_) | None => {
            return Err(
                "it has no line of context, so its place is not known. Add lines around the change."
                    .to_owned(),
            );
        }
    };
    Ok(Placed {
        splice: Splice {
            at,
            count: 0,
            new: added(hunk),
            ends: hunk.open.1.then_some(false),
        },
        by: Match::Exact,
    })
}

fn added(hunk: &Hunk) -> Vec<String> {
    let added = hunk.lines.iter().filter_map(|line| match line {
        Line::Added(text) => Some(text.clone()),
        Line::Context(_) | Line::Blank | Line::Removed(_) => None,
    });
    added.collect()
}

/// The place that is meant: the only one, the one that the numbers name, or the first below the heading.
fn the_one(lines: &Lines, hunk: &Hunk, found: &Places) -> Result<usize, String> {
    let named = hunk.start.and_then(|start| start.checked_sub(1));
    match (found.at.as_slice(), named) {
        ([at], _) => return Ok(*at),
        (at, Some(named)) if at.contains(&named) => return Ok(named),
        (at, None) if !hunk.heading.is_empty() => {
            let is_heading = |line: &String| line.trim() == hunk.heading;
            let mut headings = (0..lines.texts().len()).filter(|line| is_heading(&lines.texts()[*line]));
            if let (Some(heading), None) = (headings.next(), headings.next())
                && let Some(at) = at.iter().find(|at| **at >= heading)
            {
                return Ok(*at);
            }
        }
        _ => {}
    }
    let shown: Vec<String> = found.at.iter().take(5).map(|at| (at + 1).to_string()).collect();
    Err(format!(
        "its lines occur {} times (lines {}), and its numbers name none of these places. Add context or give the exact numbers.",
        found.at.len(),
        shown.join(", ")
    ))
}

/// Context as the file has it, and the added lines with the file's indentation.
fn rewritten(lines: &Lines, hunk: &Hunk, at: usize, by: Match) -> Result<Vec<String>, String> {
    let old = hunk.old();
    let found = &lines.texts()[at..at + old.len()];
    let fresh = match by {
        Match::Exact | Match::TrailingSpace => added(hunk),
        Match::Indentation | Match::Typography => {
            let starts_new = matches!(hunk.lines.first(), Some(Line::Removed(_) | Line::Added(_)));
            Readings::of(&old, found).apply(&added(hunk), starts_new).ok_or_else(|| {
                format!(
                    "its indentation differs from the file's, and it is not clear how the new lines should be indented. Give the lines \
                     exactly as the file has them:\n{}",
                    numbered(lines.texts(), at..at + old.len())
                )
            })?
        }
    };
    let (mut found, mut fresh) = (found.iter(), fresh.into_iter());
    let mut new = Vec::new();
    for line in &hunk.lines {
        match line {
            Line::Context(_) | Line::Blank => new.extend(found.next().cloned()),
            Line::Removed(_) => drop(found.next()),
            Line::Added(_) => new.extend(fresh.next()),
        }
    }
    Ok(new)
}

/// Writes all; when one cannot be written, those before it go back to what they were.
fn write(call: &Call, changes: &[Change]) -> Result<(), String> {
    for (number, change) in changes.iter().enumerate() {
        if let Err(error) = put(call, &change.path, change.after.as_deref()) {
            for done in &changes[..number] {
                // The first error is the one to tell.
                let _ = put(call, &done.path, done.before.as_deref());
            }
            return Err(format!("{} Nothing was changed.", explain(&change.path, &error)));
        }
    }
    Ok(())
}

fn put(call: &Call, path: &Path, content: Option<&str>) -> std::io::Result<()> {
    let root = call.workspace.root();
    content.map_or_else(
        || root.remove(path),
        |content| root.write(path, content.as_bytes()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::{World, git_diff, one_line_changed};

    fn patch(world: &World, text: &str) -> Result<String, String> {
        world.run("apply_patch", &json!({ "patch": text }))
    }

    #[test]
    fn several_files_change_at_once_wherever_the_lines_are() {
        let world = World::new();
        patch(
            &world,
            "diff --git a/shop/cart.py b/shop/cart.py\n--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -50,2 +50,2 @@\n \
             def count(items):\n-    return 0\n+    return len(items)\n--- /dev/null\n+++ b/a/new.txt\n@@ -0,0 +1 \
             @@\n+hello\n--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-#!/bin/sh\n",
        )
        .unwrap();
        let cart = world.file("shop/cart.py");
        assert!(
            cart.ends_with("def count(items):\n    return len(items)\n"),
            "{cart}"
        );
        assert!(cart.starts_with("def total(items):\n    return 0\n"), "{cart}");
        assert_eq!(world.file("a/new.txt"), "hello\n");
        assert!(world.run("read_file", &json!({ "path": "run.sh" })).is_err());
    }

    #[test]
    fn one_hunk_that_fails_changes_nothing_and_shows_the_nearest_text() {
        let world = World::new();
        let error = patch(
            &world,
            "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Shop\n+# Store\n--- a/shop/cart.py\n+++ \
             b/shop/cart.py\n@@ -1 +1 @@\n-def counts(items):\n+x\n",
        )
        .unwrap_err();
        assert!(
            error.contains("    5 def count(items):") && error.contains("Nothing was changed"),
            "{error}"
        );
        assert_eq!(world.file("README.md"), "# Shop\n");
    }

    #[test]
    fn paths_that_lead_out_and_links_are_refused() {
        let world = World::new();
        for path in ["../x", "/etc/passwd", ".git/config", "out/x", "link"] {
            let text = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-# Shop\n+x\n");
            patch(&world, &text).unwrap_err();
            let text = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
            patch(&world, &text).unwrap_err();
        }
        assert_eq!(world.file("README.md"), "# Shop\n");
    }

    /// What a patch makes of a file; the patch without its header.
    fn patched(before: &str, hunks: &str) -> Result<String, String> {
        let files = super::patch::read(&format!("--- a/f\n+++ b/f\n{hunks}"))?;
        let mut lines = super::Lines::of(before);
        super::apply(&mut lines, &files[0].hunks)?;
        Ok(lines.join())
    }

    #[test]
    fn context_stays_as_the_file_has_it_and_added_lines_follow() {
        let before = "def f():\n\tx = 1\n\treturn x\n";
        let hunks = "@@ -1,3 +1,4 @@\n def f():\n     x = 1\n+    y = 2\n     return x\n";
        assert_eq!(
            patched(before, hunks).unwrap(),
            "def f():\n\tx = 1\n\ty = 2\n\treturn x\n"
        );
    }

    #[test]
    fn an_ambiguous_place_is_an_error_unless_numbers_or_a_heading_name_it() {
        let before = "def f():\n    return 0\n\ndef g():\n    return 0\n";
        let change = "-    return 0\n+    return 1\n";
        let error = patched(before, &format!("@@\n{change}")).unwrap_err();
        assert!(error.contains("lines 2, 5"), "{error}");
        let wanted = "def f():\n    return 0\n\ndef g():\n    return 1\n";
        for header in ["@@ def g():", "@@ -5 +5 @@", "@@ -5,1 +5,1 @@ def f():"] {
            assert_eq!(
                patched(before, &format!("{header}\n{change}")).unwrap(),
                wanted,
                "{header}"
            );
        }
        patched(before, &format!("@@ -9 +9 @@\n{change}")).unwrap_err();
    }

    #[test]
    fn blank_lines_between_parts_of_a_patch_are_nothing() {
        assert_eq!(
            patched("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n").unwrap(),
            "a\nc\n"
        );
        assert_eq!(
            patched("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n\n").unwrap(),
            "a\n\nc\n"
        );
        let world = World::new();
        let text = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Shop\n+# Store\n\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n\
                    -#!/bin/sh\n+#!/bin/bash\n\n";
        let answer = patch(&world, text).unwrap();
        assert!(
            answer.contains("     1 # Store\n") && answer.contains("     1 #!/bin/bash\n"),
            "{answer}"
        );
    }

    #[test]
    fn the_end_of_a_file_changes_as_the_patch_says_and_line_ends_stay_mixed() {
        let no_end = "\\ No newline at end of file\n";
        assert_eq!(
            patched("a\nb", &format!("@@ -2 +2 @@\n-b\n{no_end}+b\n")).unwrap(),
            "a\nb\n"
        );
        assert_eq!(
            patched("a\nb\n", &format!("@@ -2 +2 @@\n-b\n+b\n{no_end}")).unwrap(),
            "a\nb"
        );
        assert_eq!(
            patched("a\r\nb\nc\n", "@@ -2 +2 @@\n-b\n+x\n").unwrap(),
            "a\r\nx\nc\n"
        );
    }

    #[test]
    fn a_deletion_that_names_only_a_part_of_the_file_is_refused() {
        let world = World::new();
        let part = "--- a/shop/cart.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def total(items):\n";
        assert!(patch(&world, part).unwrap_err().contains("only a part"));
        assert!(world.file("shop/cart.py").starts_with("def total"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

        /// Whatever git says is the difference, the tool makes the one text of the other.
        #[test]
        fn patches_by_git_give_what_git_says(
            before in "(a\n|b\n|    c\n|\td\n|\n){0,12}(e)?",
            after in "(a\n|b\n|    c\n|\td\n|\n){1,12}(e)?",
            context in 0_usize..4,
        ) {
            let hunks = git_diff(&before, &after, context);
            if !hunks.is_empty() {
                proptest::prop_assert_eq!(patched(&before, &hunks), Ok(after));
            }
        }

        /// A patch with the usual slips gives what was meant, or an error.
        #[test]
        fn sloppy_patches_are_right_or_refused(
            kinds in proptest::collection::vec(0_usize..4, 3..12),
            at in 0_usize..12,
            drift in 0_usize..40,
            indent in 0_usize..5,
            crlf in proptest::bool::ANY,
        ) {
            let (before, after) = one_line_changed(&kinds, at);
            let hunks = git_diff(&before, &after, 2);
            // Numbers that have drifted, an indentation that is not the file's, line ends of another system.
            let sloppy = hunks.lines().map(|line| match line.as_bytes().first() {
                Some(b'@') => format!("@@ -{drift},9 +{drift},9 @@"),
                _ => format!("{}{}{}", &line[..1], " ".repeat(indent), &line[1..]),
            });
            let end = if crlf { "\r\n" } else { "\n" };
            let sloppy: String = sloppy.map(|line| line + end).collect();
            if let Ok(patched) = patched(&before, &sloppy) {
                proptest::prop_assert_eq!(patched, after);
            }
        }
    }
}
