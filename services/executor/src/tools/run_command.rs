//! `run_command`: runs a shell command in confinement and kills its process tree afterwards.

use std::{sync::Arc, time::Duration};

use domain::{cause::format_error_chain, text::quote_shell_word};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{ExecutorTool, ToolAction, ToolContext, ToolOutcome, parse_input};
use crate::{
    sandbox::{CommandContext, CommandEnd, CommandEnding, CommandSpec, END_BYTES, shell_command},
    workspace::{MAX_RESULT_BYTES, Workspace},
};

/// Time limits in seconds: the default, and the largest that a call may request.
const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 600;
// Linux limits one argument of `execve` to 128 KiB (`MAX_ARG_STRLEN`), and the script is one argument of the
// shell.
const MAX_SCRIPT: usize = 100 * 1024;
/// Step to which the size of the workspace's git directory is rounded, in MiB.
const GIT_STEP_MIB: u64 = 8;

/// Note for commands that read history which is still being fetched.
const HISTORY_HINT: &str = "[The repository is large, and its older history is still being fetched: the oldest commits here look as if \
     they added every file. Do not conclude from them who wrote a line, or when.]";
/// Note after git failed to write or lacked a remote.
const GIT_HINT: &str = "[git moves no branches here, and there is no remote: use create_branch for a branch, commit_changes to \
     commit, undo to take changes back, and push_branch to push. git add, restore, checkout FILE and stash work.]";
/// Note after a command moved git's `HEAD` or a branch.
pub(crate) const HEAD_HINT: &str = "[git's head or branch was moved and is back where the workspace is, because commits and branches are made with \
     commit_changes and create_branch. The files stay as the command left them: git status shows how they differ from \
     the branch, undo takes that back.]";

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "run_command",
    description: "Runs a shell command in the workspace's root and answers with its exit code and output (standard \
                  output and error together, of long output both ends). Every call is a new shell; processes left in \
                  the background are killed when it ends. There is no input and no network, but servers on \
                  localhost work within one call. git works on files and index (status, diff, log, blame, add, restore, \
                  stash); use create_branch for branches and commit_changes to commit.",
    schema: super::build_schema_once::<Input>(),
    read_only: false,
    run: ToolAction::Command,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Shell command, e.g. python3 -m unittest -q
    command: String,
    /// Time limit in seconds: 120 unless given, at most 600
    timeout_s: Option<i64>,
    /// Folder to run it in, relative to the workspace's root; absent: the root
    cwd: Option<String>,
}

pub(super) async fn run_command_tool(
    call: &ToolContext,
    input: Value,
    sink: &mpsc::Sender<Vec<u8>>,
) -> ToolOutcome {
    let (script, seconds) = match parse_input(input).and_then(|input| validate_command(call, input)) {
        Ok(validated) => validated,
        Err(text) => return ToolOutcome::failed(text),
    };
    let lacks_history = call.workspace.git.lacks_history_of(&script);
    let spec = build_command_spec(call, script, Duration::from_secs(seconds));
    call.workspace.scanner.note_command();
    let ran = call
        .sandbox
        .run(spec, &call.cancel, Some(sink), &call.workspace.spare);
    match failpoint::around("executor.command.run", ran).await {
        Ok(end) => {
            let mut outcome = build_command_outcome(call, end, seconds).await;
            if lacks_history {
                outcome.add(HISTORY_HINT);
            }
            outcome
        }
        Err(error) => {
            tracing::error!(error = %format_error_chain(&error), "a command could not be started");
            ToolOutcome::failed("The command could not be started; this is not its fault. Try again.")
        }
    }
}

/// Validates the input. Returns the script and its time limit in seconds.
fn validate_command(call: &ToolContext, input: Input) -> Result<(String, u64), String> {
    if input.command.len() > MAX_SCRIPT {
        return Err("The command is too long. Write it to a file and run that.".to_owned());
    }
    if input.command.contains('\0') {
        return Err("The command contains a NUL character, which no shell accepts. Leave it out.".to_owned());
    }
    let seconds = input
        .timeout_s
        .map_or(DEFAULT_TIMEOUT, |seconds| u64::try_from(seconds).unwrap_or(1));
    let folder = call
        .workspace
        .disk
        .path(input.cwd.as_deref().unwrap_or_default())?;
    let script = if folder.as_os_str().is_empty() {
        input.command
    } else {
        let folder = quote_shell_word(&folder.display().to_string());
        format!("cd -- {folder} || exit 1\n{}", input.command)
    };
    Ok((script, seconds.clamp(1, MAX_TIMEOUT)))
}

async fn build_command_outcome(call: &ToolContext, end: CommandEnd, seconds: u64) -> ToolOutcome {
    let CommandEnd {
        ending,
        output,
        truncated,
        whole,
    } = end;
    let mut outcome = match ending {
        CommandEnding::Exited(code) => ToolOutcome {
            exit_code: Some(code),
            ..ToolOutcome::new(super::ToolEnding::Done, format!("exit code: {code}\n{output}"))
        },
        CommandEnding::TimedOut => ToolOutcome::failed(format!(
            "The command was killed after {seconds} s; give timeout_s or run less. Its output so far:\n{output}"
        )),
        CommandEnding::Cancelled => {
            ToolOutcome::interrupted(format!("The command was cut. Its output so far:\n{output}"))
        }
    };
    outcome.truncated |= truncated;
    outcome.whole = whole;
    // The exit code is no criterion: in a pipe it belongs to another program than git.
    if call.workspace.git.is_refused_in(&output) {
        outcome.add(GIT_HINT);
    }
    let workspace = Arc::clone(&call.workspace);
    if tokio::task::spawn_blocking(move || workspace.clear_git_obstacles())
        .await
        .unwrap_or(false)
    {
        outcome.add(HEAD_HINT);
    }
    outcome
}

/// Builds a command in the call's workspace.
pub(crate) fn build_command_spec(call: &ToolContext, script: String, limit: Duration) -> CommandSpec {
    CommandSpec {
        command: shell_command(script),
        place: build_command_context(&call.workspace),
        limit,
        output_bytes: END_BYTES,
        whole_bytes: MAX_RESULT_BYTES,
        egress: None,
    }
}

/// Builds the context of commands in a workspace.
pub(crate) fn build_command_context(workspace: &Workspace) -> CommandContext {
    CommandContext {
        directory: workspace.root().path().to_owned(),
        writable: workspace.disk.writable(),
        readable: workspace.git.readable(),
        exposed: workspace.disk.exposed(),
        covers: workspace.git.covers(),
        egress_port: None,
        environment: workspace.environment(),
        // Rounded, because an idle launcher serves only an unchanged context, and the git directory grows
        // with each change.
        beside_mib: workspace.git.objects.mib() / GIT_STEP_MIB * GIT_STEP_MIB,
    }
}
