//! `undo`: the files as they were before the latest change.

use super::{Call, Nothing, Run, Tool, object, parse};

pub(super) const TOOL: Tool = Tool {
    name: "undo",
    description: "Puts all files back to what they were before the latest tool call that changed any (run_command \
                  included). Calling it again goes back further. Commits and files named by .gitignore stay.",
    schema: || object(&[], 0),
    read_only: false,
    run: Run::Blocking(run),
};

fn run(call: &Call, input: &str) -> Result<String, String> {
    let Nothing {} = parse(input)?;
    call.workspace.undo()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn each_undo_goes_back_by_one_change() {
        let world = World::new();
        let workspace = &world.call.workspace;
        for content in ["one\n", "two\n"] {
            world
                .run("write_file", &json!({ "path": "README.md", "content": content }))
                .unwrap();
            world
                .run("write_file", &json!({ "path": "new/file", "content": content }))
                .unwrap();
            assert!(workspace.has_changed().unwrap());
        }
        let text = world.run("undo", &json!({})).unwrap();
        assert!(text.contains("README.md") && text.contains("new/file"), "{text}");
        assert!(workspace.has_changed().unwrap(), "a snapshot is due");
        assert_eq!(world.file("README.md"), "one\n");
        world.run("undo", &json!({})).unwrap();
        assert!(workspace.has_changed().unwrap());
        assert_eq!(world.file("README.md"), "# Shop\n");
        assert!(world.run("read_file", &json!({ "path": "new/file" })).is_err());
        assert!(
            world
                .run("undo", &json!({}))
                .unwrap_err()
                .contains("nothing to undo")
        );
    }

    #[test]
    fn links_and_modes_come_back() {
        let world = World::new();
        let root = world.call.workspace.root().path().to_owned();
        std::fs::remove_file(root.join("link")).unwrap();
        std::fs::write(root.join("link"), "a file now").unwrap();
        std::fs::remove_file(root.join("run.sh")).unwrap();
        assert!(world.call.workspace.has_changed().unwrap());
        world.run("undo", &json!({})).unwrap();
        assert_eq!(
            std::fs::read_link(root.join("link")).unwrap().to_str(),
            Some("README.md")
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(root.join("run.sh")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o111, 0o111);
    }
}
