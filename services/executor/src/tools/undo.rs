//! `undo`: restores the files as they were before the latest change.

use serde_json::Value;

use super::{ExecutorTool, FileToolReply, Nothing, ToolAction, ToolContext, parse_input};

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "undo",
    description: "Puts all files back to what they were before the latest tool call that changed any (run_command \
                  included). Calling it again goes back further. A commit made by that call is taken back too; files named by .gitignore stay.",
    schema: super::build_schema_once::<Nothing>(),
    read_only: false,
    run: ToolAction::Blocking(run_undo),
};

fn run_undo(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let Nothing {} = parse_input(input)?;
    call.workspace.undo().map(FileToolReply::from)
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

    #[test]
    fn undo_replaces_pipe_by_file() {
        let world = World::new();
        let path = world.call.workspace.root().path().join("README.md");
        std::fs::remove_file(&path).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        assert!(world.call.workspace.has_changed().unwrap());
        let text = world.run("undo", &json!({})).unwrap();
        assert!(text.contains("README.md"), "{text}");
        assert_eq!(world.file("README.md"), "# Shop\n");
    }

    #[test]
    fn undo_drops_commit_before_its_work() {
        let world = World::new();
        let workspace = &world.call.workspace;
        let step = |name: &str, input: serde_json::Value| {
            let text = world.run(name, &input).unwrap();
            workspace.has_changed().unwrap();
            text
        };
        step("create_branch", json!({ "branch_name": "feat/x" }));
        step(
            "write_file",
            json!({ "path": "README.md", "content": "# Store\n" }),
        );
        step("commit_changes", json!({ "message": "Closes #1" }));
        let text = step("undo", json!({}));
        assert!(text.contains("Took the commit"), "{text}");
        assert_eq!(workspace.history.branch().1, Some(workspace.git.base.clone()));
        assert_eq!(world.file("README.md"), "# Store\n");
        step("undo", json!({}));
        assert_eq!(world.file("README.md"), "# Shop\n");
    }
}
