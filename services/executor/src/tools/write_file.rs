//! `write_file`: writes a whole file.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input, syntax};
use crate::{parser::MAX_BYTES, workspace::explain_path_error};

pub(super) const TOOL: ExecutorTool = ExecutorTool {
    name: "write_file",
    description: "Writes a whole file, new or in place of what was there. Missing folders are made. To change a part \
                  of an existing file use edit_file.",
    schema: super::input_schema::<Input>,
    read_only: false,
    run: ToolAction::Blocking(run_write_file),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Path relative to the workspace's root
    path: String,
    /// The file's whole content
    content: String,
    /// Keep the file even if it cannot be parsed
    #[serde(default)]
    force: bool,
}

fn run_write_file(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let path = call.workspace.disk.path_to_write(&input.path)?;
    if path == Path::new("") {
        return Err("The path is the workspace itself. Name a file in it.".to_owned());
    }
    let unchecked = if input.force {
        String::new()
    } else {
        let before = call.workspace.root().read(&path, MAX_BYTES).ok();
        let before = before.and_then(|bytes| String::from_utf8(bytes).ok());
        syntax::check_syntax(call, &path, before.as_deref(), &input.content)?
    };
    call.workspace
        .root()
        .write(&path, input.content.as_bytes())
        .map_err(|error| explain_path_error(&path, &error))?;
    call.workspace.scanner.note_written(&path);
    Ok(format!(
        "Wrote {} ({} lines).{unchecked}",
        path.display(),
        input.content.lines().count()
    )
    .into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn write_creates_file_and_folder() {
        let world = World::new();
        world
            .run(
                "write_file",
                &json!({ "path": "a/b/c.txt", "content": "hello\n" }),
            )
            .unwrap();
        assert_eq!(world.file("a/b/c.txt"), "hello\n");
    }

    #[test]
    fn links_are_never_written_through() {
        let world = World::new();
        for path in ["link", "out/x", "out"] {
            let error = world
                .run("write_file", &json!({ "path": path, "content": "x" }))
                .unwrap_err();
            assert!(error.contains("symbolic link"), "{path}: {error}");
        }
        assert_eq!(world.file("README.md"), "# Shop\n");
    }
}
