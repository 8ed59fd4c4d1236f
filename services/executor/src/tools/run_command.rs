//! `run_command`: a shell command, confined and killed with everything it started.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;

use super::{Call, Outcome, Run, Tool, object, parse};
use crate::{
    sandbox::{CommandSpec, Ending, Place, shell},
    workspace::Workspace,
};

/// Seconds.
const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 600;
/// The kernel takes no longer single argument, in bytes.
const MAX_SCRIPT: usize = 100 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "run_command",
    description: "Runs a shell command in the workspace's root and answers with its exit code and output (standard \
                  output and error together, of long output both ends). Every call is a new shell; processes left in \
                  the background are killed when it ends. There is no input and no network, but servers on \
                  localhost work within one call.",
    schema: || {
        let properties = [
            ("command", "string", "For the shell, e.g. python3 -m unittest -q"),
            (
                "timeout_s",
                "integer",
                "Seconds it may take: 120 unless given, at most 600",
            ),
        ];
        object(&properties, 1)
    },
    read_only: false,
    run: Run::Command,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    timeout_s: Option<u64>,
}

pub(super) async fn run(call: &Call, input: &str, sink: &mpsc::Sender<Vec<u8>>) -> Outcome {
    let input: Input = match parse(input) {
        Ok(input) => input,
        Err(text) => return Outcome::Failed(text),
    };
    if input.command.len() > MAX_SCRIPT || input.command.contains('\0') {
        return Outcome::Failed("The command is too long. Write it to a file and run that.".to_owned());
    }
    let seconds = input.timeout_s.unwrap_or(DEFAULT_TIMEOUT).clamp(1, MAX_TIMEOUT);
    let spec = spec(call, input.command, Duration::from_secs(seconds));
    let ran = call
        .sandbox
        .run(spec, &call.cancel, Some(sink), &call.workspace.spare);
    match failpoint::around("executor.command.run", ran).await {
        Ok(end) => match end.ending {
            Ending::Exited(code) => Outcome::Done(format!("exit code: {code}\n{}", end.output)),
            Ending::TimedOut => Outcome::Failed(format!(
                "The command was killed after {seconds} s; give timeout_s or run less. Its output so far:\n{}",
                end.output
            )),
            Ending::Cancelled => {
                Outcome::Cut(format!("The command was cut. Its output so far:\n{}", end.output))
            }
        },
        Err(error) => {
            tracing::error!(%error, "a command could not be started");
            Outcome::Failed("The command could not be started; this is not its fault. Try again.".to_owned())
        }
    }
}

/// A command in this workspace.
pub(crate) fn spec(call: &Call, script: String, limit: Duration) -> CommandSpec {
    CommandSpec {
        command: shell(script),
        place: place(&call.workspace),
        limit,
        way_out: None,
    }
}

/// Where commands run in a workspace.
pub(crate) fn place(workspace: &Workspace) -> Place {
    Place {
        directory: workspace.root().path().to_owned(),
        writable: workspace.writable(),
        readable: workspace.readable(),
        exposed: workspace.exposed(),
        door: None,
        environment: workspace.environment(),
    }
}
