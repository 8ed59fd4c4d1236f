//! `create_branch`: creates the branch for commits.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input};

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "create_branch",
    description: "Creates the branch for this change at the base commit and checks it out. Do it once, before the first \
                  commit. Changes already made to files stay. Called again with another name, it starts over: the new branch \
                  has no commits, and the work of the earlier ones stays in the files, to be committed again.",
    schema: super::build_schema_once::<Input>(),
    read_only: false,
    run: ToolAction::Blocking(run_create_branch),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name of the branch, for example feat/ENG-12-short-title
    branch_name: String,
}

fn run_create_branch(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    call.workspace
        .create_branch(&input.branch_name)
        .map(FileToolReply::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn invalid_and_base_branch_names_refused() {
        let world = World::new();
        for name in [
            "main", "HEAD", "", "a b", "a..b", "-x", "x.lock", "a~1", "/a", "a/", "a\\b",
        ] {
            assert!(
                world
                    .run("create_branch", &json!({ "branch_name": name }))
                    .is_err(),
                "{name}"
            );
        }
        assert_eq!(world.call.workspace.history.branch(), (None, None));
    }

    #[test]
    fn branch_without_commits_can_be_renamed() {
        let world = World::new();
        let create = |name: &str| world.run("create_branch", &json!({ "branch_name": name }));
        create("feat").unwrap();
        create("feat/x").unwrap();
        create("feat/x").unwrap();
        let workspace = &world.call.workspace;
        assert_eq!(
            workspace.history.branch(),
            (Some("feat/x".to_owned()), Some(workspace.git.base.clone()))
        );
        world
            .run("write_file", &json!({ "path": "a", "content": "a" }))
            .unwrap();
        world
            .run("commit_changes", &json!({ "message": "Add a" }))
            .unwrap();
    }

    #[test]
    fn restarted_branch_keeps_work_in_files() {
        let world = World::new();
        let workspace = &world.call.workspace;
        let create = |name: &str| {
            world
                .run("create_branch", &json!({ "branch_name": name }))
                .unwrap()
        };
        create("feat");
        for content in ["key = AKIA\n", "key = from the environment\n"] {
            let file = json!({ "path": "a", "content": content });
            world.run("write_file", &file).unwrap();
            world
                .run("commit_changes", &json!({ "message": content }))
                .unwrap();
        }
        let text = create("feat/again");
        assert!(text.contains("commit_changes"), "{text}");
        assert_eq!(
            workspace.history.branch(),
            (Some("feat/again".to_owned()), Some(workspace.git.base.clone()))
        );
        assert_eq!(world.file("a"), "key = from the environment\n");
        world
            .run("commit_changes", &json!({ "message": "Add a" }))
            .unwrap();
        let head = workspace.history.branch().1.unwrap();
        assert_eq!(world.parents(&head), vec![workspace.git.base.clone()]);
    }
}
