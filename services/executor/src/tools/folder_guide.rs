//! Instructions of the folder that a call works in, at the end of its answer. The model reads each of them once.

use std::sync::Arc;

use domain::{cause::format_error_chain, text::sanitize_output};
use serde_json::Value;

use crate::workspace::Workspace;

// Maximum number of files of a call whose folders count.
const MAX_FILES: usize = 20;

/// Lists the files that a call reads or changes.
pub(super) fn list_touched_files(tool: &str, input: &Value) -> Vec<String> {
    let mut files: Vec<String> = match tool {
        "read_file" | "write_file" | "edit_file" | "outline" => {
            input["path"].as_str().map(str::to_owned).into_iter().collect()
        }
        "apply_patch" => input["patch"]
            .as_str()
            .map(list_patched_files)
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    files.truncate(MAX_FILES);
    files
}

/// Lists the files of a patch in either format.
fn list_patched_files(patch: &str) -> Vec<String> {
    let envelope = ["*** Update File: ", "*** Add File: "];
    let files = patch.lines().filter_map(|line| {
        let unified = line.strip_prefix("+++ ").map(|rest| {
            let path = rest.split('\t').next().unwrap_or(rest);
            path.strip_prefix("b/").unwrap_or(path)
        });
        unified.or_else(|| envelope.iter().find_map(|mark| line.strip_prefix(mark)))
    });
    files.map(|path| path.trim().to_owned()).collect()
}

/// Renders the instructions nearest to these files that the model has not read yet; empty without any.
pub(super) async fn render_new_guides(workspace: Arc<Workspace>, mut files: Vec<String>) -> String {
    // Most calls are about a folder of an earlier call, and opening the repository takes longer than reading a file.
    files.retain(|file| workspace.guides.find_unanswered(file).is_some());
    if files.is_empty() {
        return String::new();
    }
    let find = move || {
        let mut notes = Vec::new();
        for file in files {
            match workspace.git.new_guide_of(&workspace.guides, &file) {
                Ok(Some(guide)) => notes.push(format!(
                    "[Instructions for contributors to this folder, from {} of the base branch; they go before those of the root]\n{}\n\
                     [End of the instructions]",
                    guide.path,
                    sanitize_output(&guide.text)
                )),
                Ok(None) => {}
                // The work is possible without them.
                Err(error) => {
                    tracing::warn!(error = %format_error_chain(&error), "instructions of a folder cannot be read");
                    break;
                }
            }
        }
        notes.join("\n")
    };
    tokio::task::spawn_blocking(find).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn touched_files_are_those_of_the_call() {
        for (tool, input, expected) in [
            ("read_file", json!({"path": "a/b.rs"}), vec!["a/b.rs"]),
            ("edit_file", json!({"path": 1}), vec![]),
            (
                "run_command",
                json!({"command": "cat a/b.rs", "path": "x"}),
                vec![],
            ),
            (
                "apply_patch",
                json!({"patch": "--- a/x/y.rs\n+++ b/x/y.rs\t2026\n@@\n"}),
                vec!["x/y.rs"],
            ),
            (
                "apply_patch",
                json!({"patch": "*** Begin Patch\n*** Update File: x/y.rs\n*** Add File: z\n*** End Patch"}),
                vec!["x/y.rs", "z"],
            ),
        ] {
            assert_eq!(list_touched_files(tool, &input), expected, "{tool}");
        }
    }
}
