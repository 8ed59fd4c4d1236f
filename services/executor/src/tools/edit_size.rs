//! Sizes of edits, read from the calls of the tools that write files.

use serde_json::Value;

use super::{
    apply_patch,
    edit_file::{self, ReplacedLines},
    patch::{FilePatch, HunkLine, NOWHERE, PatchHunk, parse_patch},
    patch_envelope::{FileOperation, is_envelope, parse_envelope},
    text::match_kept_lines,
    write_file,
};

/// Size of an edit of one file, as far as the call of the tool shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditSize {
    /// Path relative to the root, as the call names it.
    pub path: String,
    /// Number of added lines.
    pub added: usize,
    /// Number of removed lines; absent when the call writes or deletes a whole file.
    pub removed: Option<usize>,
}

/// Measures the edits of a tool call. Empty for a tool that edits no file, and for a call that is not valid.
pub fn measure_edits(tool: &str, input: &Value) -> Vec<EditSize> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    if tool == edit_file::TOOL.name {
        edit_file::list_replacements(input.clone())
            .map(|(path, replacements)| vec![measure_replacements(path, &replacements)])
            .unwrap_or_default()
    } else if tool == write_file::TOOL.name {
        let written = text("path").zip(text("content"));
        Vec::from_iter(written.map(|(path, content)| EditSize {
            path: path.to_owned(),
            added: content.lines().count(),
            removed: None,
        }))
    } else if tool == apply_patch::TOOL.name {
        text("patch").map(measure_patch).unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn measure_replacements(path: String, replacements: &[ReplacedLines]) -> EditSize {
    let (mut added, mut removed) = (0, 0);
    for (old, new) in replacements {
        let kept = match_kept_lines(old, new).into_iter().flatten().count();
        added += new.len() - kept;
        removed += old.len() - kept;
    }
    EditSize {
        path,
        added,
        removed: Some(removed),
    }
}

fn measure_patch(text: &str) -> Vec<EditSize> {
    if is_envelope(text) {
        let operations = parse_envelope(text).unwrap_or_default();
        return operations.into_iter().map(measure_operation).collect();
    }
    let files = parse_patch(text).unwrap_or_default();
    files.into_iter().map(measure_file_patch).collect()
}

fn measure_file_patch(file: FilePatch) -> EditSize {
    let path = if file.new == NOWHERE { file.old } else { file.new };
    measure_hunks(path, file.hunks.iter())
}

fn measure_operation(operation: FileOperation) -> EditSize {
    match operation {
        FileOperation::Add { path, lines } => EditSize {
            path,
            added: lines.len(),
            removed: Some(0),
        },
        FileOperation::Delete { path } => EditSize {
            path,
            added: 0,
            removed: None,
        },
        FileOperation::Update {
            path,
            moved_to,
            chunks,
        } => measure_hunks(moved_to.unwrap_or(path), chunks.iter().map(|chunk| &chunk.hunk)),
    }
}

fn measure_hunks<'a>(path: String, hunks: impl Iterator<Item = &'a PatchHunk>) -> EditSize {
    let (mut added, mut removed) = (0, 0);
    for line in hunks.flat_map(|hunk| &hunk.lines) {
        match line {
            HunkLine::Added(_) => added += 1,
            HunkLine::Removed(_) => removed += 1,
            HunkLine::Context(_) | HunkLine::Blank => {}
        }
    }
    EditSize {
        path,
        added,
        removed: Some(removed),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measure_text(tool: &str, input: &Value) -> Vec<String> {
        let sizes = measure_edits(tool, input);
        let line = |size: &EditSize| format!("{} +{} -{:?}", size.path, size.added, size.removed);
        sizes.iter().map(line).collect()
    }

    #[test]
    fn edit_counts_lines_that_differ() {
        let edits = "<<<<<<< SEARCH\na\nb\nc\n=======\na\nB\nc\nd\n>>>>>>> REPLACE";
        let blocks = json!({"path": "cart.py", "edits": edits});
        assert_eq!(measure_text("edit_file", &blocks), ["cart.py +2 -Some(1)"]);
        let strings = json!({"path": "cart.py", "old_string": "a", "new_string": "b"});
        assert_eq!(measure_text("edit_file", &strings), ["cart.py +1 -Some(1)"]);
        let removal = json!({"path": "cart.py", "old_string": "a\nb", "new_string": ""});
        assert_eq!(measure_text("edit_file", &removal), ["cart.py +0 -Some(2)"]);
    }

    #[test]
    fn written_file_has_no_removed_lines() {
        let input = json!({"path": "a/b.txt", "content": "one\ntwo\n"});
        assert_eq!(measure_text("write_file", &input), ["a/b.txt +2 -None"]);
    }

    #[test]
    fn patch_of_either_format_is_counted_per_file() {
        let diff =
            "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(
            measure_text("apply_patch", &json!({"patch": diff})),
            ["f +2 -Some(1)", "g +1 -Some(0)"]
        );
        let envelope = "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+c\n*** Add File: g\n+x\n+y\n*** Delete File: h\n\
                        *** End Patch";
        assert_eq!(
            measure_text("apply_patch", &json!({"patch": envelope})),
            ["f +1 -Some(1)", "g +2 -Some(0)", "h +0 -None"]
        );
    }

    #[test]
    fn other_tools_and_invalid_calls_have_no_size() {
        for (tool, input) in [
            ("read_file", json!({"path": "f"})),
            ("edit_file", json!("not an object")),
            ("edit_file", json!({"path": "f"})),
            ("apply_patch", json!({"patch": "no patch"})),
            ("write_file", json!({"path": "f"})),
        ] {
            assert!(measure_edits(tool, &input).is_empty(), "{tool} {input}");
        }
    }
}
