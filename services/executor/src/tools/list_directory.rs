//! `list_directory`: lists the entries of a folder.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input};
use crate::workspace::{explain_path_error, is_git_folder};

const MAX_ENTRIES: usize = 2000;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "list_directory",
    description: "Lists a folder: one entry per line, `d` for folders and `f` for everything else. Use search_files to \
                  look in all folders at once.",
    schema: super::build_schema_once::<Input>(),
    read_only: true,
    run: ToolAction::Blocking(run_list_directory),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Folder relative to the workspace's root; "." is the root
    #[serde(default)]
    path: String,
}

fn run_list_directory(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let path = call.workspace.disk.path(&input.path)?;
    let entries = call
        .workspace
        .root()
        .list(&path, MAX_ENTRIES)
        .map_err(|error| explain_path_error(&path, &error))?;
    let lines = entries
        .iter()
        .filter(|entry| !is_git_folder(entry.name.as_bytes()))
        .map(|entry| format!("{} {}", if entry.is_folder { 'd' } else { 'f' }, entry.name));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return Ok("The folder is empty.".to_owned().into());
    }
    let truncated = entries.len() >= MAX_ENTRIES;
    if truncated {
        text.push_str("\n[more entries left out; use search_files]");
    }
    Ok(FileToolReply { text, truncated })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn folders_and_files_are_distinguished() {
        let world = World::new();
        let text = world.run("list_directory", &json!({ "path": "." })).unwrap();
        assert_eq!(text, "f .gitignore\nf README.md\nf link\nf out\nf run.sh\nd shop");
        assert!(
            world
                .run("list_directory", &json!({ "path": "out" }))
                .unwrap_err()
                .contains("symbolic link")
        );
    }
}
