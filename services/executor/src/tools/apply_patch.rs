//! `apply_patch`: a unified diff over any number of files, all or nothing.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Call, Run, Tool, edit_file, object, parse, syntax, text_of};
use crate::workspace::explain;

const NOWHERE: &str = "/dev/null";

pub(super) const TOOL: Tool = Tool {
    name: "apply_patch",
    description: "Applies a unified diff (--- a/path, +++ b/path, @@ hunks with context) to any number of files; \
                  /dev/null as a path makes or deletes a file. Hunks are found by their lines, so that their numbers \
                  need not be exact. Either every hunk of every file applies or nothing changes.",
    schema: || {
        let properties = [
            ("patch", "string", "The unified diff"),
            (
                "force",
                "boolean",
                "Keep the change even if a file can no longer be parsed",
            ),
        ];
        object(&properties, 1)
    },
    read_only: false,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    patch: String,
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct FilePatch<'a> {
    old: &'a str,
    new: &'a str,
    hunks: Vec<Hunk<'a>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk<'a> {
    /// First line in the old file, from 1; 0 when the patch does not say.
    start: usize,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Whether the new file's last line goes without a line end.
    open_end: bool,
}

/// What becomes of one file.
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    let files = read_patch(&input.patch)?;
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
    let paths: Vec<String> = changes
        .iter()
        .map(|change| change.path.display().to_string())
        .collect();
    Ok(format!("Patched {}.{unchecked}", paths.join(", ")))
}

fn read_patch(text: &str) -> Result<Vec<FilePatch<'_>>, String> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next_is_new = lines.peek().is_some_and(|next| next.starts_with("+++ "));
        if let (Some(old), true) = (line.strip_prefix("--- "), next_is_new) {
            let new = lines
                .next()
                .and_then(|line| line.strip_prefix("+++ "))
                .unwrap_or_default();
            files.push(FilePatch {
                old: name(old),
                new: name(new),
                hunks: Vec::new(),
            });
        } else if let (Some(numbers), Some(file)) = (line.strip_prefix("@@"), files.last_mut()) {
            file.hunks.push(Hunk {
                start: start(numbers),
                ..Hunk::default()
            });
        } else if line.starts_with("diff --git ") || line.starts_with("Binary files ") {
            // Ends a hunk; what it says comes again in the lines that follow, or cannot be applied.
            if line.starts_with("Binary") {
                return Err("The patch has a binary file. Write it with run_command.".to_owned());
            }
        } else if let Some(hunk) = files.last_mut().and_then(|file| file.hunks.last_mut()) {
            add_line(hunk, line);
        }
    }
    let is_empty = |file: &FilePatch<'_>| file.hunks.is_empty() && file.new != NOWHERE && file.old != NOWHERE;
    if files.is_empty() || files.iter().any(is_empty) {
        return Err("The patch has no change. It needs --- a/path, +++ b/path and @@ hunks.".to_owned());
    }
    Ok(files)
}

fn add_line<'a>(hunk: &mut Hunk<'a>, line: &'a str) {
    match (line.as_bytes().first(), line.get(1..)) {
        (Some(b'-'), Some(rest)) => hunk.old.push(rest),
        (Some(b'+'), Some(rest)) => {
            hunk.new.push(rest);
            hunk.open_end = false;
        }
        (Some(b'\\'), _) => hunk.open_end = true,
        (Some(b' '), Some(rest)) => {
            hunk.old.push(rest);
            hunk.new.push(rest);
            hunk.open_end = false;
        }
        // An empty line of context whose blank was lost on the way.
        (None, _) => {
            hunk.old.push("");
            hunk.new.push("");
        }
        (Some(_), _) => {}
    }
}

/// `a/path` or `path`, a time behind a tab cut off.
fn name(text: &str) -> &str {
    let text = text.split('\t').next().unwrap_or(text).trim();
    text.strip_prefix("a/")
        .or_else(|| text.strip_prefix("b/"))
        .unwrap_or(text)
}

/// ` -12,3 +12,4 @@ …` starts at 12.
fn start(numbers: &str) -> usize {
    let old = numbers.trim_start().strip_prefix('-').unwrap_or_default();
    let digits: String = old.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

fn plan(call: &Call, file: &FilePatch<'_>) -> Result<Change, String> {
    if file.old != NOWHERE && file.new != NOWHERE && file.old != file.new {
        return Err(format!(
            "{} would be renamed. Rename it with run_command (git mv is not needed).",
            file.old
        ));
    }
    let path = call
        .workspace
        .path(if file.new == NOWHERE { file.old } else { file.new })?;
    if path == Path::new("") {
        return Err("A file of the patch has no name.".to_owned());
    }
    if file.old == NOWHERE {
        if call.workspace.root().stat(&path).ok().flatten().is_some() {
            return Err(format!("{} exists already.", path.display()));
        }
        let lines: Vec<&str> = file
            .hunks
            .iter()
            .flat_map(|hunk| hunk.new.iter().copied())
            .collect();
        let open_end = file.hunks.last().is_some_and(|hunk| hunk.open_end);
        let end = if lines.is_empty() || open_end { "" } else { "\n" };
        return Ok(Change {
            path,
            before: None,
            after: Some(lines.join("\n") + end),
        });
    }
    let before = text_of(call, &path)?;
    let after = if file.new == NOWHERE {
        None
    } else {
        Some(apply(&before, &file.hunks).map_err(|why| format!("{}: {why}", path.display()))?)
    };
    Ok(Change {
        path,
        before: Some(before),
        after,
    })
}

fn apply(text: &str, hunks: &[Hunk<'_>]) -> Result<String, String> {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut shift: isize = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let expected = hunk.start.saturating_sub(1).saturating_add_signed(shift);
        let place = if hunk.old.is_empty() {
            // Pure insertion: after the line that the numbers name.
            hunk.start.saturating_add_signed(shift).min(lines.len())
        } else {
            let places = edit_file::places(&lines, &hunk.old);
            let nearest = places.into_iter().min_by_key(|place| place.abs_diff(expected));
            nearest.ok_or_else(|| {
                let near = edit_file::nearest(&lines, &hunk.old);
                format!("the lines of hunk {} do not occur. {near}", number + 1)
            })?
        };
        let new = hunk.new.iter().map(|line| (*line).to_owned());
        lines.splice(place..place + hunk.old.len(), new);
        let grown =
            isize::try_from(hunk.new.len()).unwrap_or(0) - isize::try_from(hunk.old.len()).unwrap_or(0);
        shift += grown;
    }
    let open_end = hunks.last().is_some_and(|hunk| hunk.open_end);
    let mut after = lines.join(ending);
    if !lines.is_empty() && !open_end && (text.ends_with('\n') || text.is_empty()) {
        after.push_str(ending);
    }
    Ok(after)
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

    use super::*;
    use crate::tools::tests::World;

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

    #[test]
    fn removed_lines_that_look_like_a_header_are_lines() {
        let files =
            read_patch("--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1 @@\n--- old comment\n select 1\n").unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].hunks[0].old, ["-- old comment", "select 1"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([-+@ ]{0,3}[a-c/]{0,3}\n|--- a\n\\+\\+\\+ a\n|@@ -1 \\+1 @@\n){0,20}") {
            if let Ok(files) = read_patch(&text) {
                for file in files {
                    let _ = apply("a\nb\nc\n", &file.hunks);
                }
            }
        }
    }
}
