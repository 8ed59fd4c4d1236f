//! `create_branch`: the branch that commits go to.

use serde::Deserialize;

use super::{Call, Run, Tool, object, parse};

pub(super) const TOOL: Tool = Tool {
    name: "create_branch",
    description: "Creates the branch for this change at the base commit and checks it out. Do it once, before the first \
                  commit. Changes already made to files stay.",
    schema: || {
        object(
            &[("branch_name", "string", "For example feat/ENG-12-short-title")],
            1,
        )
    },
    read_only: false,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    branch_name: String,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    call.workspace.create_branch(&input.branch_name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn bad_names_and_the_base_branch_are_refused() {
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
        assert_eq!(world.call.workspace.branch(), (None, None));
    }

    #[test]
    fn a_branch_starts_at_the_base_and_may_be_renamed_until_the_first_commit() {
        let world = World::new();
        let create = |name: &str| world.run("create_branch", &json!({ "branch_name": name }));
        create("feat").unwrap();
        create("feat/x").unwrap();
        create("feat/x").unwrap();
        let workspace = &world.call.workspace;
        assert_eq!(
            workspace.branch(),
            (Some("feat/x".to_owned()), Some(workspace.base.clone()))
        );
        world
            .run("write_file", &json!({ "path": "a", "content": "a" }))
            .unwrap();
        world
            .run("commit_changes", &json!({ "message": "Add a" }))
            .unwrap();
        assert!(create("other").unwrap_err().contains("already has commits"));
    }
}
