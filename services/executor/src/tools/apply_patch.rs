//! `apply_patch`: applies a patch to any number of files, completely or not at all. The patch is a unified
//! diff, or the format between `*** Begin Patch` and `*** End Patch`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ExecutorTool, FileToolReply, ToolAction, ToolContext, encode_text,
    hunk_placement::{apply_chunks, apply_hunks},
    parse_input,
    patch::{self, FilePatch, HunkLine, NOWHERE},
    patch_envelope::{self, FileOperation, PatchChunk},
    read_text, syntax,
    text::{FileText, TextEncoding, TextLines, keep_form, render_changes},
};
use crate::sandbox::FileKind;
use crate::workspace::explain_path_error;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "apply_patch",
    description: "Applies a unified diff (--- a/path, +++ b/path, @@ hunks with context) to any number of files; \
                  /dev/null as a path makes or deletes a file. The format *** Begin Patch, *** Update File: path (or Add \
                  File, Delete File, Move to), *** End Patch works too. Hunks are found by their lines, so line numbers \
                  need not be exact where the lines occur once. Either every hunk of every file applies or nothing \
                  changes. The answer shows the changed lines.",
    schema: super::build_schema_once::<Input>(),
    read_only: false,
    run: ToolAction::Blocking(run_apply_patch),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The patch
    patch: String,
    /// Keep the change even if a file can no longer be parsed
    #[serde(default)]
    force: bool,
}

/// Planned change of one file.
struct PlannedChange {
    path: PathBuf,
    before: Option<FileText>,
    after: Option<String>,
    /// Encoding of the text after the change.
    encoding: TextEncoding,
    /// True when a new file is executable, like the file that it was moved from.
    is_executable: bool,
    /// Text of the file that this one was moved from, before the patch changed it.
    moved: Option<String>,
    /// Text about the change for the answer.
    shown: String,
}

impl PlannedChange {
    fn before_text(&self) -> Option<&str> {
        self.before.as_ref().map(|file| file.text.as_str())
    }
}

/// Wraps a patch that the model sent as plain text instead of an object with the field `patch`.
pub(super) fn wrap_bare_patch(input: &str) -> Option<String> {
    let text = serde_json::from_str::<String>(input).unwrap_or_else(|_| input.to_owned());
    let is_bare = !text.trim_start().starts_with(['{', '"']) && patch_envelope::is_envelope(&text);
    is_bare.then(|| serde_json::json!({ "patch": text }).to_string())
}

/// Files as the previous operations leave them, so that a patch may name a file more than once.
struct PatchPlan<'a> {
    call: &'a ToolContext,
    files: BTreeMap<PathBuf, PlannedChange>,
}

impl<'a> PatchPlan<'a> {
    fn of(call: &'a ToolContext, operations: &[FileOperation]) -> Result<Vec<PlannedChange>, String> {
        let mut plan = PatchPlan {
            call,
            files: BTreeMap::new(),
        };
        for operation in operations {
            plan.perform(operation)?;
        }
        // A file that the patch creates and deletes is not a change.
        let changes = plan
            .files
            .into_values()
            .filter(|change| change.before_text() != change.after.as_deref());
        let changes: Vec<PlannedChange> = changes.collect();
        if changes.is_empty() {
            return Err("The patch changes nothing.".to_owned());
        }
        Ok(changes)
    }

    fn perform(&mut self, operation: &FileOperation) -> Result<(), String> {
        match operation {
            FileOperation::Add { path, lines } => {
                let path = self.named_to_write(path)?;
                let before = self.text_if_any(&path)?;
                let end = if lines.is_empty() { "" } else { "\n" };
                let after = lines.join("\n") + end;
                // A file that the patch replaces keeps its encoding and line ends.
                let after = match &before {
                    Some(file) => {
                        keep_form(&file.text, &after).map_err(|why| format!("{}: {why}", path.display()))?
                    }
                    None => after,
                };
                let encoding = before
                    .as_ref()
                    .map_or_else(TextEncoding::utf8, |file| file.encoding);
                let shown = match before {
                    Some(_) => format!("Replaced {} ({} lines).\n", path.display(), lines.len()),
                    None => format!("Wrote {} ({} lines).\n", path.display(), lines.len()),
                };
                self.put(path, before, Some(after), encoding, shown);
                Ok(())
            }
            FileOperation::Delete { path } => {
                let path = self.existing(path)?;
                let before = self.text(&path)?;
                let (shown, encoding) = (format!("Deleted {}.\n", path.display()), before.encoding);
                self.put(path, Some(before), None, encoding, shown);
                Ok(())
            }
            FileOperation::Update {
                path,
                moved_to,
                chunks,
            } => self.update(path, moved_to.as_deref(), chunks),
        }
    }

    fn update(&mut self, path: &str, moved_to: Option<&str>, chunks: &[PatchChunk]) -> Result<(), String> {
        let path = self.existing(path)?;
        let before = self.text(&path)?;
        let encoding = before.encoding;
        let old = TextLines::of(&before.text);
        let mut new = old.clone();
        let notes = apply_chunks(&mut new, chunks).map_err(|why| format!("{}: {why}", path.display()))?;
        let after = new.join();
        let changed = format!("{}{notes}", render_changes(old.texts(), new.texts()));
        let Some(to) = moved_to else {
            if after == before.text {
                return Err(format!("{}: the lines change nothing.", path.display()));
            }
            let shown = format!("Patched {}. The changed lines now:\n{changed}", path.display());
            self.put(path, Some(before), Some(after), encoding, shown);
            return Ok(());
        };
        self.named(to)?;
        let to = self.call.workspace.disk.path_to_move(&path, to)?;
        if to == path {
            return Err(format!("{} would be moved to its own place.", path.display()));
        }
        let is_executable = is_executable_file(self.call, &path);
        let there = self.text_if_any(&to)?;
        let shown = format!("Moved {} to {}.\n{changed}", path.display(), to.display());
        let moved = before.text.clone();
        self.put(path, Some(before), None, encoding, String::new());
        self.put(to.clone(), there, Some(after), encoding, shown);
        if let Some(change) = self.files.get_mut(&to) {
            change.is_executable = is_executable;
            change.moved = Some(moved);
        }
        Ok(())
    }

    fn named(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.call.workspace.disk.path(name)?;
        if path == Path::new("") {
            return Err("A file of the patch has no name.".to_owned());
        }
        Ok(path)
    }

    /// Resolves the path of a file that the patch creates or replaces.
    fn named_to_write(&self, name: &str) -> Result<PathBuf, String> {
        self.named(name)?;
        self.call.workspace.disk.path_to_write(name)
    }

    fn existing(&self, name: &str) -> Result<PathBuf, String> {
        match self.named(name)? {
            path if self.files.contains_key(&path) => Ok(path),
            _ => self.call.workspace.disk.existing(name),
        }
    }

    /// Returns a file as the previous operations leave it; `None` if one of them deletes it, or none names it.
    fn planned_text(&self, path: &Path) -> Option<FileText> {
        let change = self.files.get(path)?;
        Some(FileText {
            text: change.after.clone()?,
            encoding: change.encoding,
            is_lossy: false,
        })
    }

    fn text(&self, path: &Path) -> Result<FileText, String> {
        if self.files.contains_key(path) {
            return self
                .planned_text(path)
                .ok_or_else(|| format!("{} was deleted by the patch.", path.display()));
        }
        read_text(self.call, path)
    }

    fn text_if_any(&self, path: &Path) -> Result<Option<FileText>, String> {
        if self.files.contains_key(path) {
            return Ok(self.planned_text(path));
        }
        match self.call.workspace.root().stat(path) {
            Ok(None) => Ok(None),
            Ok(Some(_)) | Err(_) => read_text(self.call, path).map(Some),
        }
    }

    fn put(
        &mut self,
        path: PathBuf,
        before: Option<FileText>,
        after: Option<String>,
        encoding: TextEncoding,
        shown: String,
    ) {
        let first = PlannedChange {
            path: path.clone(),
            before,
            after: None,
            encoding,
            is_executable: false,
            moved: None,
            shown: String::new(),
        };
        let change = self.files.entry(path).or_insert(first);
        (change.after, change.encoding) = (after, encoding);
        change.shown += &shown;
    }
}

fn run_apply_patch(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    if patch_envelope::is_envelope(&input.patch) {
        let operations = patch_envelope::parse_envelope(&input.patch)?;
        let changes =
            PatchPlan::of(call, &operations).map_err(|why| format!("{why} Nothing was changed."))?;
        return finish_changes(call, &changes, input.force);
    }
    let files = patch::parse_patch(&input.patch)?;
    let mut changes: Vec<PlannedChange> = Vec::new();
    for file in &files {
        let change = plan_file_patch(call, file).map_err(|why| format!("{why} Nothing was changed."))?;
        if changes.iter().any(|other| other.path == change.path) {
            return Err(format!(
                "{} occurs twice in the patch. Put its hunks under one header.",
                change.path.display()
            ));
        }
        changes.push(change);
    }
    finish_changes(call, &changes, input.force)
}

/// Checks the syntax of the planned changes, writes them, and renders the answer.
fn finish_changes(
    call: &ToolContext,
    changes: &[PlannedChange],
    force: bool,
) -> Result<FileToolReply, String> {
    let mut unchecked = String::new();
    for change in changes {
        if let (Some(after), false) = (&change.after, force) {
            let before = change.moved.as_deref().or(change.before_text());
            unchecked += &syntax::check_syntax(call, &change.path, before, after)?;
        }
    }
    let encode = |change: &PlannedChange| {
        let bytes = change
            .after
            .as_ref()
            .map(|after| encode_text(change.encoding, after));
        let named = |why| format!("{}: {why} Nothing was changed.", change.path.display());
        bytes.transpose().map_err(named)
    };
    let contents: Result<Vec<_>, String> = changes.iter().map(encode).collect();
    let contents = contents?;
    for (change, content) in changes.iter().zip(&contents) {
        if let Some(content) = content {
            call.workspace.refuse_lfs_content(&change.path, content)?;
        }
    }
    write_changes(call, changes, &contents)?;
    let shown: Vec<&str> = changes.iter().map(|change| change.shown.as_str()).collect();
    Ok(format!("{}{unchecked}", shown.concat()).into())
}

fn plan_file_patch(call: &ToolContext, file: &FilePatch) -> Result<PlannedChange, String> {
    if file.old != NOWHERE && file.new != NOWHERE && file.old != file.new {
        return Err(format!(
            "{} would be renamed. Rename it with run_command (mv).",
            file.old
        ));
    }
    let name = if file.new == NOWHERE { &file.old } else { &file.new };
    let path = if file.old == NOWHERE {
        call.workspace.disk.path_to_write(name)?
    } else {
        call.workspace.disk.existing(name)?
    };
    if path == Path::new("") {
        return Err("A file of the patch has no name.".to_owned());
    }
    if file.old == NOWHERE {
        return plan_new_file(call, file, path);
    }
    let before = read_text(call, &path)?;
    let (old, named) = (TextLines::of(&before.text), |why| {
        format!("{}: {why}", path.display())
    });
    let mut new = old.clone();
    let notes = apply_hunks(&mut new, &file.hunks).map_err(named)?;
    let after = (file.new != NOWHERE).then(|| new.join());
    if after.is_none() && !file.hunks.is_empty() && !new.texts().is_empty() {
        return Err(named(
            "the patch deletes the file but removes only a part of its lines. Delete it with run_command (rm).".to_owned(),
        ));
    }
    if after.as_ref() == Some(&before.text) {
        return Err(named("the hunks change nothing.".to_owned()));
    }
    let shown = match &after {
        Some(_) => format!(
            "Patched {}. The changed lines now:\n{}{notes}",
            path.display(),
            render_changes(old.texts(), new.texts())
        ),
        None => format!("Deleted {}.\n", path.display()),
    };
    Ok(PlannedChange {
        path,
        encoding: before.encoding,
        before: Some(before),
        after,
        is_executable: false,
        moved: None,
        shown,
    })
}

/// Plans a new file.
fn plan_new_file(call: &ToolContext, file: &FilePatch, path: PathBuf) -> Result<PlannedChange, String> {
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
            HunkLine::Added(text) => lines.push(text),
            HunkLine::Blank => lines.push(String::new()),
            HunkLine::Context(_) | HunkLine::Removed(_) => {
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
    Ok(PlannedChange {
        path,
        before: None,
        after: Some(lines.join("\n") + end),
        encoding: TextEncoding::utf8(),
        is_executable: false,
        moved: None,
        shown,
    })
}

/// Writes the contents of all changes. If one cannot be written, the previous ones are reverted.
fn write_changes(
    call: &ToolContext,
    changes: &[PlannedChange],
    contents: &[Option<Vec<u8>>],
) -> Result<(), String> {
    // Read before the first write, because a file that comes back has the mode of a new one otherwise.
    let were_executable: Vec<bool> = changes
        .iter()
        .map(|change| is_executable_file(call, &change.path))
        .collect();
    for (number, (change, content)) in changes.iter().zip(contents).enumerate() {
        if let Err(error) = write_change(call, &change.path, content.as_deref(), change.is_executable) {
            for (done, was_executable) in changes.iter().zip(&were_executable).take(number) {
                // Never fails: the text was decoded from these bytes.
                let before = done.before.as_ref().map(|file| file.encoding.encode(&file.text));
                if let Ok(before) = before.transpose() {
                    // The error is ignored: the model receives the first error.
                    let _ = write_change(call, &done.path, before.as_deref(), *was_executable);
                }
            }
            return Err(format!(
                "{} Nothing was changed.",
                explain_path_error(&change.path, &error)
            ));
        }
    }
    Ok(())
}

fn is_executable_file(call: &ToolContext, path: &Path) -> bool {
    let stat = call.workspace.root().stat(path);
    matches!(stat, Ok(Some(stat)) if stat.kind == FileKind::File { executable: true })
}

/// Writes or removes a file. An existing file keeps its mode, and `is_executable` is the mode of a new one.
fn write_change(
    call: &ToolContext,
    path: &Path,
    content: Option<&[u8]>,
    is_executable: bool,
) -> std::io::Result<()> {
    let root = call.workspace.root();
    call.workspace.scanner.note_written(path);
    match content {
        None => root.remove(path),
        Some(content) if is_executable && matches!(root.stat(path), Ok(None)) => {
            if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
                root.make_folder(folder)?;
            }
            root.create(path, content, true).map(drop)
        }
        Some(content) => root.write(path, content),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::tools::tests::{MIXED_LINE_ENDS, MIXED_LINE_WORDS, World, git_diff, one_line_changed};

    fn call_apply_patch(world: &World, text: &str) -> Result<String, String> {
        world.run("apply_patch", &json!({ "patch": text }))
    }

    #[test]
    fn patch_changes_several_files_at_once() {
        let world = World::new();
        call_apply_patch(
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
    fn copied_line_numbers_are_left_out_of_hunks() {
        for patch in [
            "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -5,2 +5,2 @@\n      5 def count(items):\n-     6     return 0\n+     6     \
             return 1\n",
            "*** Begin Patch\n*** Update File: shop/cart.py\n@@\n      5 def count(items):\n-     6     return 0\n+    return \
             1\n*** End Patch\n",
        ] {
            let world = World::new();
            call_apply_patch(&world, patch).unwrap();
            let cart = world.file("shop/cart.py");
            assert!(cart.ends_with("\n\ndef count(items):\n    return 1\n"), "{cart}");
            assert!(cart.starts_with("def total(items):\n    return 0\n"), "{cart}");
        }
    }

    #[test]
    fn patch_with_quoted_name_is_applied() {
        let world = World::new();
        let path = "shop/caf\u{e9}.txt";
        let root = world.call.workspace.root();
        root.write(path.as_ref(), b"one\n").unwrap();
        let header = r#"--- "a/shop/caf\303\251.txt""#;
        let header = format!("{header}\n{}\n", header.replace("--- \"a/", "+++ \"b/"));
        call_apply_patch(&world, &format!("{header}@@ -1 +1 @@\n-one\n+two\n")).unwrap();
        assert_eq!(world.file(path), "two\n");
    }

    #[test]
    fn diff_of_text_about_patches_is_applied() {
        let world = World::new();
        let root = world.call.workspace.root();
        let text = "*** Begin Patch\n*** Add File: other.txt\n+x\n*** End Patch\nold\n";
        root.write("guide.md".as_ref(), text.as_bytes()).unwrap();
        let context: String = text.lines().take(4).map(|line| format!(" {line}\n")).collect();
        let patch = format!("--- a/guide.md\n+++ b/guide.md\n@@ -1,5 +1,5 @@\n{context}-old\n+new\n");
        call_apply_patch(&world, &patch).unwrap();
        assert_eq!(world.file("guide.md"), text.replace("old", "new"));
        assert!(root.stat(Path::new("other.txt")).unwrap().is_none());
    }

    #[test]
    fn failing_hunk_changes_nothing() {
        let world = World::new();
        let error = call_apply_patch(
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
    fn patch_outside_or_through_link_refused() {
        let world = World::new();
        for path in ["../x", "/etc/passwd", ".git/config", "out/x", "link"] {
            let text = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-# Shop\n+x\n");
            call_apply_patch(&world, &text).unwrap_err();
            let text = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
            call_apply_patch(&world, &text).unwrap_err();
        }
        assert_eq!(world.file("README.md"), "# Shop\n");
    }

    /// Applies a patch without header to a text.
    fn apply_patch_hunks(before: &str, hunks: &str) -> Result<String, String> {
        let files = super::patch::parse_patch(&format!("--- a/f\n+++ b/f\n{hunks}"))?;
        let mut lines = super::TextLines::of(before);
        super::apply_hunks(&mut lines, &files[0].hunks)?;
        Ok(lines.join())
    }

    /// Renders a hunk with all lines of a text as context, except those with a word, which is replaced. The lines of the
    /// hunk end in CRLF, so that a CR before a line end stays visible.
    fn render_word_hunk(before: &str, word: &str, other: &str) -> String {
        let lines = super::TextLines::of(before);
        let hunk = lines.texts().iter().map(|line| {
            if line.contains(word) {
                format!("-{line}\r\n+{}\r\n", line.replace(word, other))
            } else {
                format!(" {line}\r\n")
            }
        });
        format!("@@\r\n{}", hunk.collect::<String>())
    }

    #[test]
    fn patch_keeps_other_bytes_of_mixed_lines() {
        for (word, other) in MIXED_LINE_WORDS {
            let hunk = render_word_hunk(MIXED_LINE_ENDS, word, other);
            let after = MIXED_LINE_ENDS.replace(word, other);
            assert_eq!(apply_patch_hunks(MIXED_LINE_ENDS, &hunk).unwrap(), after);
            // A chunk of this format that reaches the last line gives it a line end.
            let ended = apply_envelope_chunks(MIXED_LINE_ENDS, &hunk).unwrap();
            assert_eq!(ended, format!("{after}\n"));
            let world = World::new();
            let root = world.call.workspace.root();
            root.write("log".as_ref(), MIXED_LINE_ENDS.as_bytes()).unwrap();
            call_apply_patch(&world, &format!("--- a/log\n+++ b/log\n{hunk}")).unwrap();
            assert_eq!(root.read("log".as_ref(), 1000).unwrap(), after.as_bytes());
        }
    }

    #[test]
    fn patch_keeps_file_context_indentation() {
        let before = "def f():\n\tx = 1\n\treturn x\n";
        let hunks = "@@ -1,3 +1,4 @@\n def f():\n     x = 1\n+    y = 2\n     return x\n";
        assert_eq!(
            apply_patch_hunks(before, hunks).unwrap(),
            "def f():\n\tx = 1\n\ty = 2\n\treturn x\n"
        );
    }

    #[test]
    fn ambiguous_hunk_needs_numbers_or_heading() {
        let before = "def f():\n    return 0\n\ndef g():\n    return 0\n";
        let change = "-    return 0\n+    return 1\n";
        let error = apply_patch_hunks(before, &format!("@@\n{change}")).unwrap_err();
        assert!(error.contains("lines 2, 5"), "{error}");
        let wanted = "def f():\n    return 0\n\ndef g():\n    return 1\n";
        for header in ["@@ def g():", "@@ -5 +5 @@", "@@ -5,1 +5,1 @@ def f():"] {
            assert_eq!(
                apply_patch_hunks(before, &format!("{header}\n{change}")).unwrap(),
                wanted,
                "{header}"
            );
        }
        apply_patch_hunks(before, &format!("@@ -9 +9 @@\n{change}")).unwrap_err();
    }

    #[test]
    fn blank_lines_between_hunks_are_ignored() {
        assert_eq!(
            apply_patch_hunks("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n").unwrap(),
            "a\nc\n"
        );
        assert_eq!(
            apply_patch_hunks("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n\n").unwrap(),
            "a\n\nc\n"
        );
        let world = World::new();
        let text = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Shop\n+# Store\n\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n\
                    -#!/bin/sh\n+#!/bin/bash\n\n";
        let answer = call_apply_patch(&world, text).unwrap();
        assert!(
            answer.contains("     1 # Store\n") && answer.contains("     1 #!/bin/bash\n"),
            "{answer}"
        );
    }

    #[test]
    fn patch_sets_file_end_keeps_line_ends() {
        let no_end = "\\ No newline at end of file\n";
        assert_eq!(
            apply_patch_hunks("a\nb", &format!("@@ -2 +2 @@\n-b\n{no_end}+b\n")).unwrap(),
            "a\nb\n"
        );
        assert_eq!(
            apply_patch_hunks("a\nb\n", &format!("@@ -2 +2 @@\n-b\n+b\n{no_end}")).unwrap(),
            "a\nb"
        );
        assert_eq!(
            apply_patch_hunks("a\r\nb\nc\n", "@@ -2 +2 @@\n-b\n+x\n").unwrap(),
            "a\r\nx\nc\n"
        );
    }

    #[test]
    fn partial_deletion_patch_is_refused() {
        let world = World::new();
        let part = "--- a/shop/cart.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def total(items):\n";
        assert!(
            call_apply_patch(&world, part)
                .unwrap_err()
                .contains("only a part")
        );
        assert!(world.file("shop/cart.py").starts_with("def total"));
    }

    #[test]
    fn envelope_applies_all_operations() {
        let world = World::new();
        let answer = call_apply_patch(
            &world,
            "*** Begin Patch\n*** Update File: shop/cart.py\n@@ def count(items):\n-    return 0\n+    return len(items)\n*** Add \
             File: a/new.txt\n+hello\n*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-#!/bin/sh\n+#!/bin/bash\n*** Delete \
             File: README.md\n*** End Patch",
        )
        .unwrap();
        let cart = world.file("shop/cart.py");
        assert!(
            cart.ends_with("def count(items):\n    return len(items)\n"),
            "{cart}"
        );
        assert!(cart.starts_with("def total(items):\n    return 0\n"), "{cart}");
        assert_eq!(world.file("a/new.txt"), "hello\n");
        assert!(world.file("bin/run.sh").starts_with("#!/bin/bash\n"));
        assert!(world.run("read_file", &json!({ "path": "README.md" })).is_err());
        assert!(answer.contains("Moved run.sh to bin/run.sh"), "{answer}");
        let listed = world.run("list_directory", &json!({ "path": "." })).unwrap();
        assert!(!listed.contains("run.sh"), "{listed}");
    }

    #[test]
    fn failing_envelope_changes_no_file() {
        let world = World::new();
        for second in [
            "*** Update File: shop/cart.py\n@@\n-no such line\n+x\n",
            "*** Update File: nowhere.py\n@@\n-a\n+b\n",
            "*** Delete File: nowhere.py\n",
            "*** Delete File: shop\n",
            "*** Update File: shop/cart.py\n@@\n-    return 0\n+    return 1\n",
            "*** Add File: ../x\n+x\n",
            "*** Add File: .git/config\n+x\n",
            "*** Update File: shop/cart.py\n*** Move to: ../../x.py\n@@ def count(items):\n-    return 0\n+    return 1\n",
        ] {
            let text = format!(
                "*** Begin Patch\n*** Update File: README.md\n@@\n-# Shop\n+# Store\n{second}*** End Patch"
            );
            let error = call_apply_patch(&world, &text).unwrap_err();
            assert!(error.contains("Nothing was changed"), "{second}: {error}");
            assert_eq!(world.file("README.md"), "# Shop\n", "{second}");
        }
    }

    #[test]
    fn file_is_moved_to_name_in_other_case() {
        let world = World::new();
        let patch = |to: &str| {
            format!("*** Begin Patch\n*** Update File: README.md\n*** Move to: {to}\n*** End Patch")
        };
        let error = call_apply_patch(&world, &patch("Run.sh")).unwrap_err();
        assert!(error.contains("differs from run.sh"), "{error}");
        call_apply_patch(&world, &patch("ReadMe.md")).unwrap();
        assert_eq!(world.file("ReadMe.md"), "# Shop\n");
        let before = world.call.workspace.root().stat(Path::new("README.md"));
        assert!(before.unwrap().is_none());
    }

    #[test]
    fn broken_file_is_moved_as_it_is() {
        let world = World::new();
        let root = world.call.workspace.root();
        root.write("old.py".as_ref(), b"def f(:\n").unwrap();
        let patch = |to: &str, lines: &str| {
            format!("*** Begin Patch\n*** Update File: old.py\n*** Move to: {to}\n{lines}*** End Patch")
        };
        call_apply_patch(&world, &patch("new.py", "")).unwrap();
        assert_eq!(world.file("new.py"), "def f(:\n");
        root.write("old.py".as_ref(), b"def f():\n    pass\n").unwrap();
        let error = call_apply_patch(&world, &patch("other.py", "@@\n-def f():\n+def f(:\n")).unwrap_err();
        assert!(error.contains("could no longer be parsed"), "{error}");
    }

    #[test]
    fn reverted_patch_keeps_file_modes() {
        let world = World::new();
        let patch = "--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-#!/bin/sh\n--- /dev/null\n+++ b/README.md/x\n\
                     @@ -0,0 +1 @@\n+x\n";
        let error = call_apply_patch(&world, patch).unwrap_err();
        assert!(error.contains("Nothing was changed"), "{error}");
        assert_eq!(world.file("run.sh"), "#!/bin/sh\n");
        let root = world.call.workspace.root();
        let kind = root.stat(Path::new("run.sh")).unwrap().unwrap().kind;
        assert_eq!(kind, super::FileKind::File { executable: true });
        assert_eq!(world.file("README.md"), "# Shop\n");
    }

    /// Applies chunks of an envelope to a text.
    fn apply_envelope_chunks(before: &str, chunks: &str) -> Result<String, String> {
        let text = format!("*** Begin Patch\n*** Update File: f\n{chunks}*** End Patch");
        let operations = super::patch_envelope::parse_envelope(&text)?;
        let super::FileOperation::Update { chunks, .. } = &operations[0] else {
            panic!("{operations:?}");
        };
        let mut lines = super::TextLines::of(before);
        super::apply_chunks(&mut lines, chunks)?;
        Ok(lines.join())
    }

    #[test]
    fn chunk_location_uses_anchors_and_order() {
        let before = "class A:\n    def f():\n        x\n\nclass B:\n    def f():\n        x\n";
        let in_b = "class A:\n    def f():\n        x\n\nclass B:\n    def f():\n        y\n";
        for chunk in [
            "@@ class B:\n@@     def f():\n-        x\n+        y\n",
            "@@ class B:\n-        x\n+        y\n",
            "@@ class B:\n class B:\n     def f():\n-        x\n+        y\n",
            "@@\n-        x\n+        y\n*** End of File\n",
            "@@ class B:\n     def f():\n-        x\n+        y\n\n",
        ] {
            assert_eq!(apply_envelope_chunks(before, chunk).unwrap(), in_b, "{chunk}");
        }
        assert!(
            apply_envelope_chunks(before, "@@\n-        x\n+        y\n")
                .unwrap_err()
                .contains("lines 3, 7")
        );
        assert!(
            apply_envelope_chunks(before, "@@ class C:\n-x\n+y\n")
                .unwrap_err()
                .contains("class C:")
        );
        let both = apply_envelope_chunks(
            before,
            "@@ class A:\n-        x\n+        y\n@@\n-        x\n+        z\n",
        )
        .unwrap();
        assert_eq!(both, before.replacen('x', "y", 1).replacen('x', "z", 1));
    }

    #[test]
    fn envelope_addition_follows_anchor_or_end() {
        assert_eq!(
            apply_envelope_chunks("a\nb\n", "@@\n+c\n+d\n").unwrap(),
            "a\nb\nc\nd\n"
        );
        assert_eq!(apply_envelope_chunks("a\nb", "+c\n").unwrap(), "a\nb\nc\n");
        assert_eq!(
            apply_envelope_chunks("a\nb\n", "@@ a\n+c\n").unwrap(),
            "a\nc\nb\n"
        );
        assert_eq!(
            apply_envelope_chunks("old", "@@\n-old\n+one\n+two\n").unwrap(),
            "one\ntwo\n"
        );
        assert_eq!(
            apply_envelope_chunks("a\r\nb\r\n", "@@\n-b\n+c\n").unwrap(),
            "a\r\nc\r\n"
        );
        assert_eq!(
            apply_envelope_chunks("a\nb\nc\n", "@@\n a\n-b\n c\n").unwrap(),
            "a\nc\n"
        );
    }

    #[test]
    fn envelope_is_taken_in_every_wrapping() {
        for wrap in [
            "*** Begin Patch \nPATCH\n *** End Patch\n",
            "```\n*** Begin Patch\nPATCH\n*** End Patch\n```\n",
            "apply_patch <<'EOF'\n*** Begin Patch\nPATCH\n*** End Patch\nEOF\n",
            "PATCH\n*** End Patch\n",
        ] {
            let world = World::new();
            let text = wrap.replace("PATCH", "  *** Update File: README.md\n@@\n-# Shop\n+# Store");
            call_apply_patch(&world, &text).unwrap_or_else(|error| panic!("{wrap}: {error}"));
            assert_eq!(world.file("README.md"), "# Store\n", "{wrap}");
        }
        let world = World::new();
        let text = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Shop\n+# Store\n*** Update File: \
                    README.md\n@@\n+more\n*** End Patch";
        world
            .run("apply_patch", &json!({ "command": ["apply_patch", text] }))
            .unwrap();
        assert_eq!(world.file("README.md"), "# Store\nmore\n");
        let twice = "*** Begin Patch\n*** Add File: README.md\n+again\n*** End Patch";
        world.run("apply_patch", &json!(twice)).unwrap();
        assert_eq!(world.file("README.md"), "again\n");
    }

    /// Trees before and after a patch, for every rule of the format.
    const SCENARIOS: &str = include_str!("patch_scenarios.json");

    #[test]
    fn patch_scenarios_leave_expected_trees() {
        let scenarios: Value = serde_json::from_str(SCENARIOS).unwrap();
        for scenario in scenarios.as_array().unwrap() {
            let world = World::new();
            let root = world.call.workspace.root();
            for (path, text) in scenario["input"].as_object().unwrap() {
                world
                    .run(
                        "write_file",
                        &json!({ "path": path, "content": text, "format": "as_given" }),
                    )
                    .unwrap();
            }
            let outcome = call_apply_patch(&world, scenario["patch"].as_str().unwrap());
            let name = &scenario["name"];
            match scenario["refused"].as_str() {
                Some(words) => {
                    let error = outcome.unwrap_err();
                    assert!(error.contains(words), "{name}: {error}");
                }
                None => drop(outcome.unwrap_or_else(|error| panic!("{name}: {error}"))),
            }
            for (path, text) in scenario["expected"].as_object().unwrap() {
                assert_eq!(world.file(path), text.as_str().unwrap(), "{name}: {path}");
            }
            for path in scenario["absent"].as_array().into_iter().flatten() {
                let path = path.as_str().unwrap();
                assert!(root.stat(Path::new(path)).unwrap().is_none(), "{name}: {path}");
            }
        }
    }

    #[test]
    fn empty_patch_call_shows_examples() {
        let world = World::new();
        for input in [json!({}), json!({ "patch": "" }), json!({ "patch": "hello" })] {
            let error = world.run("apply_patch", &input).unwrap_err();
            assert!(
                error.contains("*** Begin Patch") && error.contains("--- a/src/cart.py"),
                "{error}"
            );
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

        /// Property: a patch that git writes turns one text into the other.
        #[test]
        fn patches_of_git_give_its_result(
            before in "(a\n|b\n|    c\n|\td\n|\n){0,12}(e)?",
            after in "(a\n|b\n|    c\n|\td\n|\n){1,12}(e)?",
            context in 0_usize..4,
        ) {
            let hunks = git_diff(&before, &after, context);
            if !hunks.is_empty() {
                proptest::prop_assert_eq!(apply_patch_hunks(&before, &hunks), Ok(after));
            }
        }

        /// Property: a hunk that changes a word changes no other byte.
        #[test]
        fn changed_word_leaves_other_bytes(text in "[ab\r\n]{0,12}M[ab\r\n]{0,12}") {
            let hunk = render_word_hunk(&text, "M", "N");
            proptest::prop_assert_eq!(apply_patch_hunks(&text, &hunk), Ok(text.replace('M', "N")));
        }

        /// Property: a patch with common mistakes gives the intended text or an error.
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
            // Mistakes: outdated numbers, another indentation than the file's, line ends of another system.
            let sloppy = hunks.lines().map(|line| match line.as_bytes().first() {
                Some(b'@') => format!("@@ -{drift},9 +{drift},9 @@"),
                _ => format!("{}{}{}", &line[..1], " ".repeat(indent), &line[1..]),
            });
            let end = if crlf { "\r\n" } else { "\n" };
            let sloppy: String = sloppy.map(|line| line + end).collect();
            if let Ok(patched) = apply_patch_hunks(&before, &sloppy) {
                proptest::prop_assert_eq!(patched, after);
            }
        }
    }
}
