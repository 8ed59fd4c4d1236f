//! `list_directory`: what a folder holds.

use serde::Deserialize;

use super::{Call, Run, Tool, object, parse};
use crate::workspace::explain;

const MAX_ENTRIES: usize = 2000;

pub(super) const TOOL: Tool = Tool {
    name: "list_directory",
    description: "Lists a folder: one entry a line, `d` for folders and `f` for everything else. Use search_files to \
                  look in all folders at once.",
    schema: || {
        object(
            &[(
                "path",
                "string",
                "Folder relative to the workspace's root; \".\" is the root",
            )],
            0,
        )
    },
    read_only: true,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(default)]
    path: String,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    let path = call.workspace.path(&input.path)?;
    let entries = call
        .workspace
        .root()
        .list(&path, MAX_ENTRIES)
        .map_err(|error| explain(&path, &error))?;
    if entries.is_empty() {
        return Ok("The folder is empty.".to_owned());
    }
    let lines = entries
        .iter()
        .map(|entry| format!("{} {}", if entry.is_folder { 'd' } else { 'f' }, entry.name));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if entries.len() >= MAX_ENTRIES {
        text.push_str("\n[more entries left out; use search_files]");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn folders_and_files_are_told_apart() {
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
