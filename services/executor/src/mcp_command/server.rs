//! Starts MCP servers in the sandbox, and converts their answers and failures.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::{
    MCP_LIST_MS, MOST_MCP_COMMAND_BYTES, MOST_MCP_TIMEOUT_MS,
    cause::format_error_chain,
    is_mcp_rejection,
    text::{sanitize_output, take_tail},
};
use proto::executor as wire;
use serde_json::{Map, Value};
use tokio::{net::UnixStream, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    message::ServerFailure,
    session::{ServerListing, ServerSession},
};
use crate::{
    sandbox::{CommandSandbox, DialogEnd, DialogOutcome, DialogSpec},
    tools::{self, ToolEnding, ToolOutcome},
    workspace::Workspace,
};

const MOST_LIMIT: Duration = Duration::from_millis(MOST_MCP_TIMEOUT_MS);
const LIST_LIMIT: Duration = Duration::from_millis(MCP_LIST_MS);
// Limit in bytes for each end of a server's standard error.
const ERROR_BYTES: usize = 8 * 1024;
// Lines and characters of standard error in the failure of a server that ended.
const ERROR_LINES: usize = 20;
const ERROR_CHARS: usize = 2_000;

/// Command of a server, as the planner requests it. Its parts are valid.
#[derive(Clone, Debug)]
pub(crate) struct ServerCommand {
    command: Vec<String>,
    /// Working directory, relative to the root.
    directory: PathBuf,
    environment: Vec<(String, String)>,
    limit: Duration,
}

/// Call of a tool at a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerCall {
    pub(crate) command: ServerCommand,
    /// Name of the tool at the server.
    pub(crate) tool: String,
}

/// Context of a dialog.
pub(crate) struct ServerContext<'a> {
    pub(crate) workspace: &'a Arc<Workspace>,
    pub(crate) sandbox: &'a CommandSandbox,
    /// Cancelled when no caller waits for the result.
    pub(crate) cancel: &'a CancellationToken,
    /// Receiver of the server's standard error.
    pub(crate) sink: Option<&'a mpsc::Sender<Vec<u8>>>,
}

impl ServerCommand {
    /// Validates a command.
    ///
    /// # Errors
    /// Problem of the request, as text for the planner.
    pub(crate) fn parse(workspace: &Workspace, server: &wire::ServerCommand) -> Result<Self, tonic::Status> {
        let refuse = |problem: &str| Err(tonic::Status::invalid_argument(problem));
        let variables = server.environment.iter().flat_map(|(name, value)| [name, value]);
        let texts = server.command.iter().chain(variables);
        if texts.clone().any(|text| text.contains('\0')) {
            return refuse("the command of a server contains a zero byte");
        }
        if texts.map(String::len).sum::<usize>() > MOST_MCP_COMMAND_BYTES {
            let limit = MOST_MCP_COMMAND_BYTES >> 10;
            return refuse(&format!("the command of a server is larger than {limit} KiB"));
        }
        if server.command.first().is_none_or(String::is_empty) {
            return refuse("the command of a server is empty");
        }
        if server
            .environment
            .keys()
            .any(|name| name.is_empty() || name.contains('='))
        {
            return refuse("a variable of a server has no name");
        }
        let directory = workspace.disk.path(&server.directory);
        let limit = Duration::from_millis(server.limit_ms.max(1).into());
        Ok(Self {
            command: server.command.clone(),
            directory: directory.map_err(tonic::Status::invalid_argument)?,
            environment: server
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            limit: limit.min(MOST_LIMIT),
        })
    }

    fn build_spec(&self, workspace: &Workspace, most: Duration) -> DialogSpec {
        let mut place = tools::build_command_context(workspace);
        if !self.directory.as_os_str().is_empty() {
            place.directory.push(&self.directory);
        }
        let is_changed = |name: &String| self.environment.iter().any(|(changed, _)| changed == name);
        place.environment.retain(|(name, _)| !is_changed(name));
        place.environment.extend(self.environment.iter().cloned());
        DialogSpec {
            command: self.command.clone(),
            place,
            limit: self.limit.min(most),
            error_bytes: ERROR_BYTES,
        }
    }
}

/// Failure of a dialog as text, with the caller's knowledge about it.
#[derive(Debug)]
pub(crate) struct DialogFailure {
    /// Reason; it may quote the server.
    pub(crate) text: String,
    ending: ToolEnding,
}

/// Lists the tools of a server.
///
/// # Errors
/// Reason that the server does not work.
pub(crate) async fn list_server_tools(
    context: &ServerContext<'_>,
    command: &ServerCommand,
) -> Result<ServerListing, DialogFailure> {
    let spec = command.build_spec(context.workspace, LIST_LIMIT);
    let was_sent = AtomicBool::new(false);
    run_dialog(context, spec, &was_sent, list_tools).await
}

/// Calls a tool of a server. The text of a completed call is the server's result as JSON.
pub(crate) async fn call_server_tool(
    context: &ServerContext<'_>,
    call: &ServerCall,
    input: &str,
) -> ToolOutcome {
    let Ok(Value::Object(arguments)) = serde_json::from_str(input) else {
        return ToolOutcome::failed("The arguments are not a JSON object.");
    };
    let spec = call.command.build_spec(context.workspace, MOST_LIMIT);
    let was_sent = AtomicBool::new(false);
    let talk = |stream| call_tool(stream, &call.tool, arguments, &was_sent);
    match run_dialog(context, spec, &was_sent, talk).await {
        Ok(text) => ToolOutcome::done(text),
        Err(DialogFailure { text, ending }) => match ending {
            ToolEnding::Interrupted => ToolOutcome::interrupted(text),
            ToolEnding::Done | ToolEnding::Failed => ToolOutcome::failed(text),
        },
    }
}

async fn list_tools(stream: UnixStream) -> Result<ServerListing, ServerFailure> {
    ServerSession::open(stream).await?.list_tools().await
}

async fn call_tool(
    stream: UnixStream,
    tool: &str,
    arguments: Map<String, Value>,
    was_sent: &AtomicBool,
) -> Result<String, ServerFailure> {
    let mut session = ServerSession::open(stream).await?;
    was_sent.store(true, Ordering::Relaxed);
    session.call_tool(tool, arguments).await
}

/// Runs a dialog with a server. `was_sent` is true after it if the server may have received the call.
async fn run_dialog<T, F: Future<Output = Result<T, ServerFailure>>>(
    context: &ServerContext<'_>,
    spec: DialogSpec,
    was_sent: &AtomicBool,
    talk: impl FnOnce(UnixStream) -> F,
) -> Result<T, DialogFailure> {
    let limit = spec.limit;
    context.workspace.scanner.note_command();
    let ran = context.sandbox.converse(spec, context.cancel, context.sink, talk);
    let ended = failpoint::around("executor.server.run", ran).await;
    // The effect of a call that was sent is unknown.
    let unanswered = if was_sent.load(Ordering::Relaxed) {
        ToolEnding::Interrupted
    } else {
        ToolEnding::Failed
    };
    let end = match ended {
        Ok(end) => end,
        Err(error) => {
            tracing::error!(error = %format_error_chain(&error), "a server could not be run");
            return Err(DialogFailure {
                text: "the server could not be run; this is not its fault".to_owned(),
                ending: unanswered,
            });
        }
    };
    tracing::debug!(
        run = %context.workspace.run,
        exit_code = end.exit_code,
        stderr = %sanitize_output(&end.errors),
        "a dialog with a server ended"
    );
    let exit = render_exit(&end);
    let (text, ending) = match end.outcome {
        DialogOutcome::Finished(Ok(value)) => return Ok(value),
        DialogOutcome::Finished(Err(failure)) => match failure {
            ServerFailure::Refused { code, .. } => {
                let is_rejected = i32::try_from(code).is_ok_and(is_mcp_rejection);
                let ending = if is_rejected {
                    ToolEnding::Failed
                } else {
                    unanswered
                };
                (failure.to_string(), ending)
            }
            // Only a server that ended explains itself with its standard error.
            ServerFailure::Ended => (format!("{failure}{exit}"), unanswered),
            ServerFailure::Broken(_)
            | ServerFailure::TooLarge
            | ServerFailure::TooMany
            | ServerFailure::Protocol(_) => (format_error_chain(&failure), unanswered),
        },
        DialogOutcome::TimedOut => {
            let text = format!("the server did not answer within {} ms", limit.as_millis());
            (text, unanswered)
        }
        DialogOutcome::Cancelled => ("the call was interrupted".to_owned(), ToolEnding::Interrupted),
    };
    Err(DialogFailure { text, ending })
}

/// Renders the exit code of a server, and the last lines of its standard error.
fn render_exit<T>(end: &DialogEnd<T>) -> String {
    let code = end
        .exit_code
        .map_or_else(String::new, |code| format!(" (exit code {code})"));
    let errors = sanitize_output(&end.errors);
    let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines
        .get(lines.len().saturating_sub(ERROR_LINES)..)
        .unwrap_or_default();
    match last {
        [] => code,
        last => format!(
            "{code}. Last lines of its standard error:\n{}",
            take_tail(&last.join("\n"), ERROR_CHARS)
        ),
    }
}
