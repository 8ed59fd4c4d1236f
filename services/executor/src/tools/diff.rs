//! `diff`: shows the changes since the base commit.

use serde_json::Value;

use super::{ExecutorTool, FileToolReply, Nothing, ToolAction, ToolContext, parse_input};

/// Limit of the shown diff, in bytes.
const MAX_SHOWN: usize = 48 * 1024;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "diff",
    description: "Shows all changes since the base commit, committed or not, as a unified diff. Look at it before \
                  commit_changes and before the pull request.",
    schema: super::build_schema_once::<Nothing>(),
    read_only: true,
    run: ToolAction::Blocking(run_diff),
};

fn run_diff(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let Nothing {} = parse_input(input)?;
    let diff = call.workspace.diff(MAX_SHOWN).map_err(|problem| {
        format!("The diff could not be made: {problem}. Look at single files with git diff in run_command.")
    })?;
    if diff.files_changed == 0 {
        return Ok(format!(
            "Nothing has changed since the base commit.{}",
            call.workspace.scanner.report_omissions()
        )
        .into());
    }
    let more = if diff.truncated {
        "\n[the rest is left out; see single files with git diff <base commit> -- <path> in run_command]"
    } else {
        ""
    };
    let text = format!(
        "{} file(s) changed\n{}{more}{}",
        diff.files_changed,
        diff.text,
        call.workspace.scanner.report_omissions()
    );
    Ok(FileToolReply {
        text,
        truncated: diff.truncated,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn changes_are_shown_against_the_base() {
        let world = World::new();
        assert!(
            world
                .run("diff", &json!({}))
                .unwrap()
                .contains("Nothing has changed")
        );
        world
            .run(
                "write_file",
                &json!({ "path": "README.md", "content": "# Store\n" }),
            )
            .unwrap();
        let text = world.run("diff", &json!({})).unwrap();
        assert!(text.starts_with("1 file(s) changed\n"), "{text}");
        assert!(text.contains("-# Shop\n+# Store\n"), "{text}");
    }
}
