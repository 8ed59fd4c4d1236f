//! Executes a tool call from its request to its stored result.

use std::{sync::Arc, time::Duration};

use domain::CommitAuthor;
use proto::executor::{
    CallToolRequest, CallToolResponse, ListServerToolsResponse, OutputChunk, ToolResult, ToolStatus,
    call_tool_response::Event,
};
use tokio::{
    sync::{RwLockReadGuard, RwLockWriteGuard, mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{
    calls::ResultRecorder,
    responses::{run_blocking, wire_level},
    workspace_use::{OpenedWorkspace, WorkspaceUse},
};
use crate::{
    mcp_command::{ServerCall, ServerCommand, ServerContext, call_server_tool, list_server_tools},
    sandbox::CommandSandbox,
    tools::{self, ToolContext, ToolEnding, ToolOutcome},
    workspace::{ScanScope, Workspace},
};

/// Channel for the responses of one call.
pub(crate) type ResponseSender<A> = mpsc::Sender<Result<A, Status>>;

/// Response type of a call that streams output.
pub(crate) trait OutputResponse: Sized {
    /// Creates a response with a chunk of output.
    fn output(data: Vec<u8>) -> Self;
}

/// Response type of a call that has a result.
pub(crate) trait ResultResponse<R>: Sized {
    /// Creates a response with the result.
    fn result(result: R) -> Self;
}

impl OutputResponse for CallToolResponse {
    fn output(data: Vec<u8>) -> Self {
        let event = Some(Event::Output(OutputChunk { data }));
        Self { event }
    }
}

impl ResultResponse<ToolResult> for CallToolResponse {
    fn result(result: ToolResult) -> Self {
        let event = Some(Event::Result(result));
        Self { event }
    }
}

/// A tool call that runs for the first time, with everything that its task needs.
pub(crate) struct ToolRun {
    pub(crate) used: WorkspaceUse,
    pub(crate) sandbox: CommandSandbox,
    pub(crate) request: CallToolRequest,
    /// Call of an MCP server; absent: of a tool.
    pub(crate) server: Option<ServerCall>,
    pub(crate) limit: Duration,
    pub(crate) recorder: ResultRecorder<ToolResult>,
    pub(crate) answers: ResponseSender<CallToolResponse>,
}

/// Answers a repeated call with the result of the first one, as soon as it exists.
pub(crate) async fn replay_result<R: Clone, A: ResultResponse<R>>(
    used: WorkspaceUse,
    mut result: watch::Receiver<Option<R>>,
    answers: ResponseSender<A>,
) {
    let found = tokio::select! {
        found = result.wait_for(Option::is_some) => found.ok().and_then(|found| found.clone()),
        () = answers.closed() => None,
    };
    if let Some(result) = found {
        send_result(answers, result).await;
    }
    // The use prevents the deletion of the workspace until the result is sent.
    drop(used);
}

/// Runs work to its end while it forwards output. When the caller is gone or the time limit is reached,
/// `cancel` is cancelled, and the work ends soon afterwards.
pub(crate) async fn run_while_awaited<R, A: OutputResponse>(
    work: impl Future<Output = R>,
    mut output: mpsc::Receiver<Vec<u8>>,
    answers: &ResponseSender<A>,
    cancel: &CancellationToken,
    limit: Duration,
) -> R {
    tokio::pin!(work);
    let deadline = tokio::time::sleep(limit);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            result = &mut work => return result,
            Some(data) = output.recv() => {
                // The error is ignored: a slow reader misses chunks, but the result has the whole output.
                let _ = answers.try_send(Ok(A::output(data)));
            }
            // After a cancellation only the work ends the loop; a branch that stays ready would make it spin.
            () = answers.closed(), if !cancel.is_cancelled() => cancel.cancel(),
            () = &mut deadline, if !cancel.is_cancelled() => cancel.cancel(),
        }
    }
}

/// Runs a call to its end, or until it is cancelled: the caller is gone, its deadline passed, a newer fence
/// arrived, or the executor stops. A result is stored in any case.
pub(crate) async fn run_tool_call(run: ToolRun) {
    let started = Instant::now();
    let cancel = run.used.cancel.child_token();
    let (sink, output) = mpsc::channel(64);
    let work = execute_tool(&run, cancel.clone(), sink);
    let mut result = run_while_awaited(work, output, &run.answers, &cancel, run.limit).await;
    result.duration_ms = elapsed_milliseconds(started);
    let (status, duration_ms) = (result.status(), result.duration_ms);
    // Stored before it is sent, so that a caller that misses the response finds the result.
    run.recorder.finish(result.clone());
    send_result(run.answers, result).await;
    tracing::info!(
        run = %run.used.open.workspace.run,
        call = run.request.call_id,
        status = status.as_str_name(),
        duration_ms,
        "tool call ended"
    );
    // A command usually follows another call, so a launcher is prepared now. A workspace without calls needs none.
    run.used.open.prepare_launcher(&run.sandbox).await;
}

/// Returns the milliseconds since `started`.
pub(crate) fn elapsed_milliseconds(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Sends the result and ends the response with it. A caller that is gone repeats the call and receives the stored
/// result.
pub(crate) async fn send_result<R, A: ResultResponse<R>>(answers: ResponseSender<A>, result: R) {
    let _ = answers.send(Ok(A::result(result))).await;
}

/// Parses the commit author that the planner names. A planner of an earlier release names none, and its
/// reporter expects the author of that release.
fn author_of(named: &str) -> CommitAuthor {
    named
        .parse()
        .unwrap_or_else(|_| CommitAuthor::of_earlier_releases())
}

async fn execute_tool(run: &ToolRun, cancel: CancellationToken, sink: mpsc::Sender<Vec<u8>>) -> ToolResult {
    if let Some(call) = &run.server {
        return Box::pin(execute_server_call(run, call, cancel, sink)).await;
    }
    let open = &run.used.open;
    let tool = match tools::find_tool(&run.request.name) {
        Ok(tool) => tool,
        Err(text) => return build_tool_result(run, ToolOutcome::failed(text), false),
    };
    let Some(_turn) = cancel.run_until_cancelled(take_turn(open, tool.read_only)).await else {
        return build_tool_result(
            run,
            ToolOutcome::interrupted("The call was cut before it started."),
            false,
        );
    };
    let call = ToolContext {
        workspace: Arc::clone(&open.workspace),
        sandbox: run.sandbox.clone(),
        index: open.index.clone(),
        commit_time_s: run.request.commit_time_s,
        commit_author: author_of(&run.request.commit_author),
        cancel,
    };
    let mut outcome = Box::pin(tools::run_tool(tool, call, &run.request.input_json, &sink)).await;
    // The scan of the files is slow, and only needed after a tool that may change them.
    if tool.read_only {
        return build_tool_result(run, outcome, false);
    }
    let scope = if tools::has_noted_writes(tool) && outcome.ending == ToolEnding::Done {
        ScanScope::Written
    } else {
        ScanScope::Worktree
    };
    let (changed, note) = scan_changes(run, scope).await;
    outcome.add(&note);
    build_tool_result(run, outcome, changed)
}

/// Calls an MCP server. It is a command, so it may have changed files, whatever its tool declares.
async fn execute_server_call(
    run: &ToolRun,
    call: &ServerCall,
    cancel: CancellationToken,
    sink: mpsc::Sender<Vec<u8>>,
) -> ToolResult {
    let open = &run.used.open;
    let Some(_turn) = cancel.run_until_cancelled(take_turn(open, false)).await else {
        let outcome = ToolOutcome::failed("the call was interrupted before it started");
        return build_tool_result(run, outcome, false);
    };
    let context = ServerContext {
        workspace: &open.workspace,
        sandbox: &run.sandbox,
        cancel: &cancel,
        sink: Some(&sink),
    };
    let outcome = Box::pin(call_server_tool(&context, call, &run.request.input_json)).await;
    let git_note = clear_git_obstacles(&open.workspace).await;
    let (changed, note) = scan_changes(run, ScanScope::Worktree).await;
    let notes: Vec<&str> = [git_note, note.as_str()]
        .into_iter()
        .filter(|note| !note.is_empty())
        .collect();
    ToolResult {
        note: notes.join("\n"),
        ..build_tool_result(run, outcome, changed)
    }
}

/// Lists the tools of an MCP server. It may change files while it starts, like every command. The next tool that
/// changes files finds them.
///
/// # Errors
/// [`tonic::Code::Aborted`] for a cancelled list. It shows nothing about the server, so the planner repeats it.
pub(crate) async fn run_server_listing(
    used: WorkspaceUse,
    sandbox: CommandSandbox,
    command: ServerCommand,
    cancel: CancellationToken,
) -> Result<ListServerToolsResponse, Status> {
    let interrupted = || Status::aborted("the list of a server's tools was interrupted");
    let turn = cancel.run_until_cancelled(take_turn(&used.open, false));
    let _turn = turn.await.ok_or_else(interrupted)?;
    let context = ServerContext {
        workspace: &used.open.workspace,
        sandbox: &sandbox,
        cancel: &cancel,
        sink: None,
    };
    let listed = Box::pin(list_server_tools(&context, &command)).await;
    clear_git_obstacles(&used.open.workspace).await;
    match listed {
        Ok(listing) => Ok(ListServerToolsResponse {
            tools_json: listing.tools,
            omitted: listing.omitted,
            failure: String::new(),
        }),
        Err(_) if cancel.is_cancelled() => Err(interrupted()),
        Err(problem) => Ok(ListServerToolsResponse {
            failure: problem.text,
            ..ListServerToolsResponse::default()
        }),
    }
}

/// Removes obstacles to git that a server may have left. Returns a note if it moved the head.
async fn clear_git_obstacles(workspace: &Arc<Workspace>) -> &'static str {
    let workspace = Arc::clone(workspace);
    let head_moved = tokio::task::spawn_blocking(move || workspace.clear_git_obstacles()).await;
    if head_moved.unwrap_or(false) {
        tools::HEAD_HINT
    } else {
        ""
    }
}

/// Turn of a tool. Tools of one workspace share its files, so only reads run at the same time.
enum ToolTurn<'a> {
    Shared { _guard: RwLockReadGuard<'a, ()> },
    Alone { _guard: RwLockWriteGuard<'a, ()> },
}

async fn take_turn(open: &OpenedWorkspace, is_read: bool) -> ToolTurn<'_> {
    if is_read {
        ToolTurn::Shared {
            _guard: open.shared_turn().await,
        }
    } else {
        ToolTurn::Alone {
            _guard: open.exclusive_turn().await,
        }
    }
}

/// Scans the files that a tool may have changed. Returns true for a change, with a note for the model.
async fn scan_changes(run: &ToolRun, scope: ScanScope) -> (bool, String) {
    let workspace = Arc::clone(&run.used.open.workspace);
    let scanned = run_blocking(move || {
        let changed = workspace.has_changed_in(scope)?;
        Ok((changed, workspace.scanner.report_new_omissions()))
    })
    .await;
    scanned.unwrap_or_else(|status| {
        // The call counts as a change: the planner then takes a snapshot, which reports the failure.
        let note = format!("[the files could not be scanned: {}]", status.message());
        (true, note)
    })
}

fn build_tool_result(run: &ToolRun, outcome: ToolOutcome, changed: bool) -> ToolResult {
    let status = match outcome.ending {
        ToolEnding::Done => ToolStatus::Ok,
        ToolEnding::Failed => ToolStatus::Error,
        ToolEnding::Interrupted => ToolStatus::Interrupted,
    };
    let (branch, head) = run.used.open.workspace.history.branch();
    ToolResult {
        status: status.into(),
        content: outcome.text,
        changed,
        sandbox_level: wire_level(run.sandbox.level()).into(),
        duration_ms: 0,
        branch: branch.unwrap_or_default(),
        head_commit: head.map(String::from).unwrap_or_default(),
        exit_code: outcome.exit_code,
        truncated: outcome.truncated,
        tree: run.used.open.workspace.history.tree_name().unwrap_or_default(),
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::error::TryRecvError;

    use super::*;

    #[tokio::test]
    async fn result_ends_its_response() {
        let (answers, mut responses) = mpsc::channel(4);
        send_result::<_, CallToolResponse>(answers, ToolResult::default()).await;
        let sent = responses.try_recv().unwrap().unwrap();
        assert_eq!(sent.event, Some(Event::Result(ToolResult::default())));
        assert_eq!(responses.try_recv().unwrap_err(), TryRecvError::Disconnected);
    }
}
