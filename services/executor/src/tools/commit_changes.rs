//! `commit_changes`: commits all changed files.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input};

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "commit_changes",
    description: "Commits all changed, new and deleted files on the branch; there is no staging. Files named by \
                  .gitignore are left out. Needs create_branch first. With amend, the last commit of this branch is \
                  replaced: its changes and the new ones become one commit with the new message.",
    schema: super::build_schema_once::<Input>(),
    read_only: false,
    run: ToolAction::Blocking(run_commit_changes),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Commit message: a short first line, then details if needed
    message: String,
    /// Replace the last commit instead of adding one
    #[serde(default)]
    amend: bool,
}

fn run_commit_changes(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let Input { message, amend } = parse_input(input)?;
    call.workspace
        .commit_changes(&message, amend, (&call.commit_author, call.commit_time_s))
        .map(FileToolReply::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    fn commit_new_file(world: &World) -> domain::CommitId {
        world
            .run("create_branch", &json!({ "branch_name": "feat/x" }))
            .unwrap();
        world
            .run("write_file", &json!({ "path": "new.txt", "content": "new\n" }))
            .unwrap();
        world
            .run("commit_changes", &json!({ "message": "Add a file" }))
            .unwrap();
        world.call.workspace.history.branch().1.unwrap()
    }

    #[test]
    fn equal_change_gives_equal_commit() {
        let (one, two) = (commit_new_file(&World::new()), commit_new_file(&World::new()));
        assert_eq!(one, two);
    }

    #[test]
    fn amend_replaces_last_commit() {
        let world = World::new();
        let workspace = &world.call.workspace;
        let amend =
            |message: &str| world.run("commit_changes", &json!({ "message": message, "amend": true }));
        world
            .run("create_branch", &json!({ "branch_name": "feat/x" }))
            .unwrap();
        assert!(amend("x").unwrap_err().contains("no commit to amend"));
        let first = {
            let file = json!({ "path": "new.txt", "content": "new\n" });
            world.run("write_file", &file).unwrap();
            world
                .run("commit_changes", &json!({ "message": "Closes #1" }))
                .unwrap();
            workspace.history.branch().1.unwrap()
        };
        // Only an invalid message can fail here.
        amend("Add a file").unwrap();
        let second = workspace.history.branch().1.unwrap();
        assert_ne!(first, second);
        let file = json!({ "path": "new.txt", "content": "newer\n" });
        world.run("write_file", &file).unwrap();
        amend("Add a newer file").unwrap();
        let third = workspace.history.branch().1.unwrap();
        assert_eq!(world.parents(&third), vec![workspace.git.base.clone()]);
        assert!(workspace.diff(10_000).unwrap().text.contains("+newer"));
    }

    #[test]
    fn empty_commit_and_missing_branch_fail() {
        let world = World::new();
        let commit = || world.run("commit_changes", &json!({ "message": "x" }));
        assert!(commit().unwrap_err().contains("create_branch"));
        world
            .run("create_branch", &json!({ "branch_name": "feat/x" }))
            .unwrap();
        assert!(commit().unwrap_err().contains("nothing to commit"));
        world
            .run("write_file", &json!({ "path": "x.log", "content": "ignored" }))
            .unwrap();
        assert!(commit().unwrap_err().contains("nothing to commit"));
    }

    #[test]
    fn same_size_change_is_detected() {
        let world = World::new();
        let workspace = &world.call.workspace;
        let place = workspace.root().path().join("README.md");
        world
            .run("create_branch", &json!({ "branch_name": "feat/x" }))
            .unwrap();
        for content in ["# Shoe\n", "# Shut\n", "# Ship\n"] {
            std::fs::write(&place, content).unwrap();
            world
                .run("commit_changes", &json!({ "message": content }))
                .unwrap();
        }
        assert!(workspace.diff(10_000).unwrap().text.contains("+# Ship"));
    }

    #[test]
    fn unsafe_ignore_file_does_not_block() {
        let world = World::new();
        world
            .run("create_branch", &json!({ "branch_name": "feat/x" }))
            .unwrap();
        let tree = world.call.workspace.root().path();
        std::fs::remove_file(tree.join(".gitignore")).unwrap();
        for place in [tree.join(".gitignore"), tree.join("shop/.gitignore")] {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &place,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .unwrap();
        }
        world
            .run("write_file", &json!({ "path": "new.log", "content": "new" }))
            .unwrap();
        world
            .run("commit_changes", &json!({ "message": "Without rules" }))
            .unwrap();
        let diff = world.call.workspace.diff(10_000).unwrap().text;
        assert!(diff.contains("new.log") && !diff.contains("cart.py"), "{diff}");
    }
}
