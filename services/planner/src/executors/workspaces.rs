//! Calls to open workspaces, each with a grant, a deadline and the trace context.

use std::time::Duration;

use domain::{
    CallId, CommitAuthor, CommitId, ExecutorWorkspace, MCP_LIST_MS, McpCommand, Timestamp, ToolCall,
    ToolResult, ToolStatus,
    cause::format_error_chain,
    check::{ChangeReport, CheckCandidate, CheckSpec, CompletedCheck},
    text::sanitize_output,
};
use proto::executor as wire;
use queue::{ObjectUpload, StoredObject};
use tokio::sync::mpsc;
use tonic::{Request, Streaming};

use super::{
    channels::ExecutorClient,
    connection::{CallError, RunCaller},
    fleet::ExecutorFleet,
};
use crate::snapshots::SnapshotQuota;

// A little longer than the executor's limit for a tool, so that its own result arrives first.
const TOOL_LIMIT: Duration = Duration::from_secs(11 * 60);
// A little longer than the executor's limit for a check, so that its own result arrives first.
const CHECK_LIMIT: Duration = Duration::from_secs(36 * 60);
// Reading the files of a large workspace takes time.
const READ_LIMIT: Duration = Duration::from_secs(120);
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(120);
// A little longer than the executor's limit for a list of tools, so that its own failure arrives first.
const SERVER_LIST_LIMIT: Duration = Duration::from_millis(MCP_LIST_MS + 5_000);
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Calls to one open workspace of a run.
#[derive(Clone, Copy)]
pub(crate) struct WorkspaceCalls<'a> {
    fleet: &'a ExecutorFleet,
    pub(crate) caller: &'a RunCaller,
    executor: &'a str,
    pub(super) id: &'a str,
}

/// Description of a snapshot, and its pack in the object store.
pub(crate) struct TakenSnapshot {
    pub(crate) info: wire::SnapshotInfo,
    pub(crate) pack: StoredObject,
}

/// Result of a tool of an MCP server that is a command.
pub(crate) struct ServerToolResult {
    /// Result whose content is that of the server as JSON, or a failure that may quote the server.
    pub(crate) result: ToolResult,
    /// Note of the executor about the workspace; may be empty.
    pub(crate) note: String,
}

/// Tools of an MCP server that is a command, or its failure.
pub(crate) struct ServerToolList {
    /// Tools as JSON.
    pub(crate) tools: Vec<String>,
    /// Number of further tools.
    pub(crate) omitted: u32,
    /// Reason that the server does not work; it may quote the server. Empty: it works.
    pub(crate) failure: String,
}

impl ExecutorFleet {
    /// Returns the calls of a run to its open workspace.
    pub(crate) fn workspace<'a>(
        &'a self,
        caller: &'a RunCaller,
        info: &'a ExecutorWorkspace,
    ) -> WorkspaceCalls<'a> {
        self.workspace_at(caller, &info.executor, &info.id)
    }

    /// Returns the calls to the workspace with this id at an executor.
    pub(crate) const fn workspace_at<'a>(
        &'a self,
        caller: &'a RunCaller,
        executor: &'a str,
        id: &'a str,
    ) -> WorkspaceCalls<'a> {
        WorkspaceCalls {
            fleet: self,
            caller,
            executor,
            id,
        }
    }
}

impl WorkspaceCalls<'_> {
    /// Returns the client of the executor, and a request for this workspace.
    pub(super) fn prepare<T>(
        &self,
        limit: Duration,
        message: T,
    ) -> Result<(ExecutorClient, Request<T>), CallError> {
        let channels = &self.fleet.channels;
        let request = channels.request(self.caller, Some(self.id), limit, message)?;
        Ok((channels.client(self.executor)?, request))
    }

    /// Runs one tool and waits for its result. Its output goes to `output` meanwhile.
    ///
    /// # Errors
    /// [`CallError`]; the call may still be running. A call with the same id returns its result.
    pub(crate) async fn call_tool(
        self,
        id: &CallId,
        call: &ToolCall,
        (at, author): (Timestamp, &CommitAuthor),
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<ToolResult, CallError> {
        let message = wire::CallToolRequest {
            commit_time_s: at.unix_s(),
            commit_author: author.to_string(),
            ..self.tool_request(id, call)
        };
        let result = self.await_tool(message, &call.name, output).await?;
        Ok(convert_tool_result(result))
    }

    /// Runs one tool of an MCP server that is a command, and waits for its result. Its standard error goes to
    /// `output` meanwhile.
    ///
    /// # Errors
    /// [`CallError`]; the call may still be running. A call with the same id returns its result.
    pub(crate) async fn call_server_tool(
        self,
        id: &CallId,
        call: &ToolCall,
        (command, tool): (&McpCommand, &str),
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<ServerToolResult, CallError> {
        let message = wire::CallToolRequest {
            server: Some(build_server_command(command, tool)),
            ..self.tool_request(id, call)
        };
        // Servers choose the names of their tools, so a name is not the kind of a failpoint.
        let result = self.await_tool(message, "mcp", output).await?;
        Ok(ServerToolResult {
            note: sanitize_output(&result.note).into_owned(),
            result: convert_tool_result(result),
        })
    }

    /// Lists the tools of an MCP server that is a command.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn list_server_tools(self, command: &McpCommand) -> Result<ServerToolList, CallError> {
        let message = wire::ListServerToolsRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            server: Some(build_server_command(command, "")),
        };
        let (mut client, request) = self.prepare(SERVER_LIST_LIMIT, message)?;
        let listed = client.list_server_tools(request).await?.into_inner();
        Ok(ServerToolList {
            tools: listed.tools_json,
            omitted: listed.omitted,
            failure: sanitize_output(&listed.failure).into_owned(),
        })
    }

    fn tool_request(self, id: &CallId, call: &ToolCall) -> wire::CallToolRequest {
        wire::CallToolRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            call_id: id.to_string(),
            name: call.name.clone(),
            input_json: call.input.to_string(),
            ..wire::CallToolRequest::default()
        }
    }

    async fn await_tool(
        self,
        message: wire::CallToolRequest,
        kind: &str,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<wire::ToolResult, CallError> {
        // Dropped at the end of the call, which requests its spans.
        let _noted = self.fleet.note_call(self.executor, self.caller);
        let (mut client, request) = self.prepare(TOOL_LIMIT, message)?;
        let called = client.call_tool(request);
        let mut events = failpoint::around_kind("planner.executor.call_tool", kind, called)
            .await?
            .into_inner();
        while let Some(event) = events.message().await? {
            match event.event {
                Some(wire::call_tool_response::Event::Result(result)) => return Ok(result),
                Some(wire::call_tool_response::Event::Output(chunk)) => {
                    // A viewer misses chunks that arrive too fast; the journal has the whole result.
                    let _ = output.try_send(chunk.data);
                }
                None => {}
            }
        }
        Err(CallError::trouble("the call ended without a result"))
    }

    /// Streams the difference from the base as a pack from the executor to the object store.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn snapshot(
        self,
        at: Timestamp,
        quota: &SnapshotQuota,
    ) -> Result<TakenSnapshot, CallError> {
        let message = wire::SnapshotWorkspaceRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            commit_time_s: at.unix_s(),
        };
        let (mut client, request) = self.prepare(SNAPSHOT_LIMIT, message)?;
        let called = client.snapshot_workspace(request);
        let mut events = failpoint::around("planner.executor.snapshot", called)
            .await?
            .into_inner();
        let mut upload = quota.upload();
        match receive_snapshot(&mut events, &mut upload, quota).await {
            Ok(info) => Ok(TakenSnapshot {
                info,
                pack: upload.finish().await.map_err(CallError::Store)?,
            }),
            Err(error) => {
                // Otherwise the parts of a refused pack would stay in the store until the daily collection.
                upload.discard().await;
                Err(error)
            }
        }
    }

    /// Runs a check in a scratch tree and waits for its result. Its output goes to `output` meanwhile.
    ///
    /// # Errors
    /// [`CallError`]; the check may still be running. A call with the same id returns its result.
    pub(crate) async fn run_check(
        self,
        id: &CallId,
        check: &CheckSpec,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<CompletedCheck, CallError> {
        let message = wire::RunCheckRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            call_id: id.to_string(),
            command: check.command.clone(),
            directory: check.directory.clone(),
            tree: Some((&check.tree).into()),
            limit_s: check.limit_s.unwrap_or_default(),
            reports: check.reports.clone(),
            // A repeated run is to confirm the first one.
            may_be_kept: check.again == 0,
        };
        let _noted = self.fleet.note_call(self.executor, self.caller);
        let (mut client, request) = self.prepare(CHECK_LIMIT, message)?;
        let called = client.run_check(request);
        let mut events = failpoint::around("planner.executor.run_check", called)
            .await?
            .into_inner();
        while let Some(event) = events.message().await? {
            match event.event {
                Some(wire::run_check_response::Event::Result(result)) => {
                    return result.of(check).map_err(|why| CallError::trouble(&why));
                }
                Some(wire::run_check_response::Event::Output(chunk)) => {
                    // A viewer misses chunks that arrive too fast; the result has the whole output.
                    let _ = output.try_send(chunk.data);
                }
                None => {}
            }
        }
        Err(CallError::trouble("the check ended without a result"))
    }

    /// Returns commands that may serve as checks at the base commit, `given` first. `reports`: files that they
    /// write, by the rules.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn find_checks(
        self,
        (given, reports): (&[String], &[String]),
    ) -> Result<Vec<CheckCandidate>, CallError> {
        let message = wire::FindChecksRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            commands: given.to_vec(),
            reports: reports.to_vec(),
        };
        let (mut client, request) = self.prepare(READ_LIMIT, message)?;
        let called = client.find_checks(request);
        let found = failpoint::around("planner.executor.find_checks", called)
            .await?
            .into_inner();
        Ok(found.candidates.into_iter().map(CheckCandidate::from).collect())
    }

    /// Inspects the workspace's change and the parts of it that weaken checks. `ticket_text`: wording of
    /// the ticket.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn inspect_change(self, ticket_text: String) -> Result<ChangeReport, CallError> {
        let message = wire::InspectChangeRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            ticket_text,
        };
        let (mut client, request) = self.prepare(READ_LIMIT, message)?;
        let called = client.inspect_change(request);
        let report = failpoint::around("planner.executor.inspect_change", called)
            .await?
            .into_inner();
        report.try_into().map_err(|why: String| CallError::trouble(&why))
    }

    /// Extends the life of the workspace by five minutes. A failure shows at the next call.
    pub(crate) async fn keep_alive(self) {
        let message = wire::KeepAliveRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
        };
        let sent = async {
            let (mut client, request) = self.prepare(CLOSE_LIMIT, message)?;
            client.keep_alive(request).await.map_err(CallError::from)
        };
        if let Err(error) = sent.await {
            tracing::debug!(run = %self.caller.run, error = %format_error_chain(&error), "keepalive failed");
        }
    }

    /// Closes the workspace. After a failure the slot maintenance finds it open and closes it later.
    pub(crate) async fn close(self) {
        // Requests the spans that ended with the workspace.
        let _noted = self.fleet.note_call(self.executor, self.caller);
        let message = wire::CloseWorkspaceRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
        };
        let sent = async {
            let (mut client, request) = self.prepare(CLOSE_LIMIT, message)?;
            client.close_workspace(request).await.map_err(CallError::from)
        };
        let sent = tokio::time::timeout(CLOSE_LIMIT, sent);
        match failpoint::around("planner.executor.close", sent).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::debug!(run = %self.caller.run, error = %format_error_chain(&error), "workspace could not be closed")
            }
            Err(_) => tracing::debug!(run = %self.caller.run, "workspace could not be closed in time"),
        }
    }
}

/// Forwards a pack to the object store and returns its description.
async fn receive_snapshot(
    events: &mut Streaming<wire::SnapshotWorkspaceResponse>,
    upload: &mut ObjectUpload,
    quota: &SnapshotQuota,
) -> Result<wire::SnapshotInfo, CallError> {
    let mut info = None;
    while let Some(event) = events.message().await? {
        match event.event {
            Some(wire::snapshot_workspace_response::Event::Info(found)) => info = Some(found),
            Some(wire::snapshot_workspace_response::Event::PackChunk(chunk)) => {
                let bytes = upload.size_bytes() + chunk.len() as u64;
                if let Some(refusal) = quota.refuse(bytes) {
                    return Err(CallError::Unkeepable(refusal));
                }
                upload.push(&chunk).await.map_err(CallError::Store)?;
            }
            None => {}
        }
    }
    info.ok_or_else(|| CallError::trouble("the snapshot came without its description"))
}

fn build_server_command(command: &McpCommand, tool: &str) -> wire::ServerCommand {
    wire::ServerCommand {
        command: command.command.clone(),
        directory: command.directory.clone(),
        environment: command.environment.clone().into_iter().collect(),
        limit_ms: u32::try_from(command.timeout_ms).unwrap_or(u32::MAX),
        tool: tool.to_owned(),
    }
}

fn convert_tool_result(result: wire::ToolResult) -> ToolResult {
    let status = match wire::ToolStatus::try_from(result.status) {
        Ok(wire::ToolStatus::Ok) => ToolStatus::Ok,
        Ok(wire::ToolStatus::Interrupted) => ToolStatus::Interrupted,
        // A status that this release does not know must not count as success.
        Ok(wire::ToolStatus::Error | wire::ToolStatus::Unspecified) | Err(_) => ToolStatus::Error,
    };
    ToolResult {
        status,
        // Executors are less trusted: one may run an earlier release or be compromised.
        content: sanitize_output(&result.content).into_owned(),
        changed: result.changed,
        branch: Some(result.branch).filter(|branch| !branch.is_empty()),
        head: parse_commit_id(&result.head_commit),
        duration_ms: result.duration_ms,
        exit_code: result.exit_code,
        truncated: result.truncated,
        tree: result.tree.parse().ok(),
    }
}

/// Parses a commit id; `None` for an empty or invalid one.
pub(crate) fn parse_commit_id(text: &str) -> Option<CommitId> {
    text.parse().ok()
}
