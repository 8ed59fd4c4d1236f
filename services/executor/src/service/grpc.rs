//! Implementation of the gRPC contract.

use std::{pin::Pin, sync::Arc, time::Duration};

use bootstrap::trace;
use domain::RunId;
use proto::executor::{self as wire, executor_service_server::ExecutorService};
use tokio::sync::mpsc;
use tokio_stream::{
    Stream, StreamExt,
    wrappers::{ReceiverStream, WatchStream},
};
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};
use tracing::{Instrument, Span};

use super::{
    admission::{MAX_CALL, check_request_fence, grant_of, may_see_status, time_limit},
    calls::CallStart,
    registry::{ExecutorStatus, WorkspaceRegistry},
    responses::{list_tool_specs, run_blocking, wire_level},
    spans::SpanDesk,
    tool_call::{self, ToolRun},
    workspace_opening,
    workspace_use::WorkspaceUse,
};
use crate::{
    checks::{self, CheckCall},
    inspection,
    mcp_command::{ServerCall, ServerCommand},
    retrieval, tools,
    workspace::{SnapshotPack, Workspace},
};

// The processes of a closed workspace end within two seconds.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Service for planners.
pub(crate) struct ExecutorGrpc {
    pub(crate) registry: Arc<WorkspaceRegistry>,
    pub(crate) spans: Arc<SpanDesk>,
}

impl ExecutorGrpc {
    /// Returns the workspace of a request after checking its grant and fence.
    fn workspace<T>(
        &self,
        request: &Request<T>,
        id: &str,
        with: Option<wire::Fence>,
    ) -> Result<WorkspaceUse, Status> {
        let grant = grant_of(request)?;
        let fence = check_request_fence(&grant, with)?;
        self.registry.find(&grant, id, fence)
    }

    /// Makes a new span a child of the caller's span, and records that the run's ticket owns that trace.
    fn join_trace(&self, span: &Span, run: &RunId, metadata: &MetadataMap) {
        trace::join_caller_trace(span, metadata.as_ref());
        if let Some(trace) = trace::caller_trace(metadata.as_ref()) {
            self.spans.note(run.ticket(), trace);
        }
    }
}

#[tonic::async_trait]
impl ExecutorService for ExecutorGrpc {
    type CallToolStream = ResponseStream<wire::CallToolResponse>;
    type RunCheckStream = ResponseStream<wire::RunCheckResponse>;
    type SnapshotWorkspaceStream = ResponseStream<wire::SnapshotWorkspaceResponse>;
    type WatchStatusStream = ResponseStream<wire::WatchStatusResponse>;

    async fn open_workspace(
        &self,
        request: Request<Streaming<wire::OpenWorkspaceRequest>>,
    ) -> Result<Response<wire::OpenWorkspaceResponse>, Status> {
        let grant = grant_of(&request)?;
        let span = tracing::info_span!("open_workspace", run = %grant.run);
        self.join_trace(&span, &grant.run, request.metadata());
        let mut parts = request.into_inner();
        let work = async {
            let spec = workspace_opening::receive_spec(&mut parts).await?;
            let fence = check_request_fence(&grant, spec.fence)?;
            workspace_opening::open_workspace(&self.registry, &grant, fence, spec, parts).await
        };
        Box::pin(work.instrument(span)).await.map(Response::new)
    }

    async fn list_tools(
        &self,
        request: Request<wire::ListToolsRequest>,
    ) -> Result<Response<wire::ListToolsResponse>, Status> {
        may_see_status(&request)?;
        Ok(Response::new(wire::ListToolsResponse {
            tools: list_tool_specs(),
        }))
    }

    async fn call_tool(
        &self,
        request: Request<wire::CallToolRequest>,
    ) -> Result<Response<Self::CallToolStream>, Status> {
        let message = request.get_ref();
        if message.call_id.is_empty() {
            return Err(Status::invalid_argument("call_id is missing"));
        }
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        let server = message.server.as_ref().map(|server| {
            let command = ServerCommand::parse(&used.open.workspace, server)?;
            let tool = server.tool.clone();
            Ok::<_, Status>(ServerCall { command, tool })
        });
        let server = server.transpose()?;
        let limit = time_limit(request.metadata(), MAX_CALL);
        // The name of an unknown tool is text of the model and must not become the name of a span.
        let name = tools::find_tool(&message.name).map_or("unknown", |tool| tool.name);
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = format!("execute_tool {name}"),
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = name,
            run = %used.open.workspace.run,
        );
        self.join_trace(&span, &used.open.workspace.run, request.metadata());
        let (answers, stream) = mpsc::channel(64);
        let request = request.into_inner();
        match used.open.calls.begin(&request.call_id) {
            CallStart::Known(result) => drop(tokio::spawn(tool_call::replay_result(used, result, answers))),
            CallStart::New(recorder) => {
                let sandbox = self.registry.sandbox.clone();
                let run = ToolRun {
                    used,
                    sandbox,
                    request,
                    server,
                    limit,
                    recorder,
                    answers,
                };
                // A separate task, so that the call continues and stores its result when the caller is gone.
                drop(tokio::spawn(tool_call::run_tool_call(run).instrument(span)));
            }
        }
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn list_server_tools(
        &self,
        request: Request<wire::ListServerToolsRequest>,
    ) -> Result<Response<wire::ListServerToolsResponse>, Status> {
        let message = request.get_ref();
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        let server = message.server.as_ref();
        let server = server.ok_or_else(|| Status::invalid_argument("server is missing"))?;
        let command = ServerCommand::parse(&used.open.workspace, server)?;
        let sandbox = self.registry.sandbox.clone();
        // A separate task, so that the turn ends after the server, also when the caller is gone.
        let cancel = used.cancel.child_token();
        let _caller = cancel.clone().drop_guard();
        let listing = tool_call::run_server_listing(used, sandbox, command, cancel);
        let listed = tokio::spawn(listing.in_current_span()).await;
        let listed = listed.map_err(|_| Status::internal("the list of a server's tools panicked"))?;
        listed.map(Response::new)
    }

    async fn run_check(
        &self,
        request: Request<wire::RunCheckRequest>,
    ) -> Result<Response<Self::RunCheckStream>, Status> {
        let message = request.get_ref();
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        let check = checks::validate_check(&used.open.workspace, message)?;
        let limit = time_limit(request.metadata(), checks::MAX_CALL);
        let span = tracing::info_span!("run_check", run = %used.open.workspace.run);
        self.join_trace(&span, &used.open.workspace.run, request.metadata());
        let (answers, stream) = mpsc::channel(64);
        // Before the call is recorded: a caller that leaves during the wait repeats it.
        let base_key = checks::find_base_key(&used.open, message).await;
        match used.open.checks.begin(&message.call_id) {
            CallStart::Known(result) => drop(tokio::spawn(tool_call::replay_result(used, result, answers))),
            CallStart::New(recorder) => {
                let call = CheckCall {
                    used,
                    base_key,
                    registry: Arc::clone(&self.registry),
                    call_id: message.call_id.clone(),
                    check,
                    limit,
                    recorder,
                    answers,
                };
                drop(tokio::spawn(checks::run_check(call).instrument(span)));
            }
        }
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn find_checks(
        &self,
        request: Request<wire::FindChecksRequest>,
    ) -> Result<Response<wire::FindChecksResponse>, Status> {
        let message = request.get_ref();
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        let (workspace, given) = (Arc::clone(&used.open.workspace), message.commands.clone());
        let mut found = run_blocking(move || checks::find_check_candidates(&workspace, given)).await?;
        let kept = &self.registry.base_results;
        checks::mark_known_candidates(&used.open, kept, &mut found, &message.reports).await;
        let candidates = found.into_iter().map(Into::into).collect();
        Ok(Response::new(wire::FindChecksResponse { candidates }))
    }

    async fn inspect_change(
        &self,
        request: Request<wire::InspectChangeRequest>,
    ) -> Result<Response<wire::InspectChangeResponse>, Status> {
        let message = request.get_ref();
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        // No tool may change the files during the inspection.
        let _turn = used.open.exclusive_turn().await;
        let (workspace, ticket) = (Arc::clone(&used.open.workspace), message.ticket_text.clone());
        let report = run_blocking(move || inspection::inspect_change(&workspace, &ticket)).await?;
        Ok(Response::new(report.into()))
    }

    async fn snapshot_workspace(
        &self,
        request: Request<wire::SnapshotWorkspaceRequest>,
    ) -> Result<Response<Self::SnapshotWorkspaceStream>, Status> {
        let message = request.get_ref();
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        let _turn = used.open.exclusive_turn().await;
        let (workspace, time_s) = (Arc::clone(&used.open.workspace), message.commit_time_s);
        let base = workspace.git.base.to_string();
        let taken = run_blocking(move || workspace.snapshot(time_s));
        let snapshot = failpoint::around("executor.workspace.snapshot", taken).await?;
        Ok(Response::new(Box::pin(tokio_stream::iter(snapshot_messages(
            base, snapshot,
        )))))
    }

    async fn seed_context(
        &self,
        request: Request<wire::SeedContextRequest>,
    ) -> Result<Response<wire::SeedContextResponse>, Status> {
        let message = request.get_ref();
        let used = self.workspace(&request, &message.workspace_id, message.fence)?;
        let (index, workspace) = (used.open.index.clone(), Arc::clone(&used.open.workspace));
        let answered = retrieval::seed_context(index, workspace, used.cancel.clone(), request.into_inner());
        answered.await.map(Response::new)
    }

    async fn close_workspace(
        &self,
        request: Request<wire::CloseWorkspaceRequest>,
    ) -> Result<Response<wire::CloseWorkspaceResponse>, Status> {
        let message = request.get_ref();
        match self.workspace(&request, &message.workspace_id, message.fence) {
            Ok(used) => {
                let run = used.open.workspace.run.clone();
                // This use would keep the workspace open during the wait below.
                drop(used);
                if let Some(gone) = self.registry.close(&run) {
                    // After this response the caller may open the next workspace, so the slot must be free.
                    // The result is ignored: a late slot is not an error.
                    let _ = tokio::time::timeout(CLOSE_LIMIT, gone.cancelled()).await;
                }
            }
            // A planner may repeat the call, so a workspace that is gone counts as closed.
            Err(status) if status.code() == tonic::Code::NotFound => {}
            Err(status) => return Err(status),
        }
        Ok(Response::new(wire::CloseWorkspaceResponse {}))
    }

    async fn keep_alive(
        &self,
        request: Request<wire::KeepAliveRequest>,
    ) -> Result<Response<wire::KeepAliveResponse>, Status> {
        let message = request.get_ref();
        self.workspace(&request, &message.workspace_id, message.fence)?;
        Ok(Response::new(wire::KeepAliveResponse {}))
    }

    async fn take_spans(
        &self,
        request: Request<wire::TakeSpansRequest>,
    ) -> Result<Response<wire::TakeSpansResponse>, Status> {
        let grant = grant_of(&request)?;
        let message = request.get_ref();
        let fence = check_request_fence(&grant, message.fence)?;
        self.registry.check_fence(&grant.run, fence)?;
        let taken = self.spans.take(grant.run.ticket(), &message.trace_id)?;
        Ok(Response::new(taken))
    }

    async fn watch_status(
        &self,
        request: Request<wire::WatchStatusRequest>,
    ) -> Result<Response<Self::WatchStatusStream>, Status> {
        // Names of repositories and runs are visible to planners only.
        may_see_status(&request)?;
        let (registry, keeps_spans) = (Arc::clone(&self.registry), self.spans.keeps_spans());
        let mut ended = false;
        let changes = WatchStream::new(self.registry.capacity.changes());
        let statuses = changes
            .map(move |()| registry.status())
            .take_while(move |status| {
                // The last message reports the drain. Then the stream ends, so that the server can stop.
                !std::mem::replace(&mut ended, status.draining)
            });
        Ok(Response::new(Box::pin(
            statuses.map(move |status| Ok(status_message(status, keeps_spans))),
        )))
    }
}

fn status_message(status: ExecutorStatus, keeps_spans: bool) -> wire::WatchStatusResponse {
    wire::WatchStatusResponse {
        started_at: status.started_at.unix_s(),
        free_slots: status.free,
        total_slots: status.total,
        warm_repositories: status.warm,
        sandbox_level: wire_level(status.level).into(),
        draining: status.draining,
        open_runs: status.open.iter().map(|workspace| open_run(workspace)).collect(),
        unready: status.unready.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        system: status.toolchain.system,
        programs: status.toolchain.programs,
        keeps_spans,
    }
}

fn open_run(workspace: &Workspace) -> wire::OpenRun {
    wire::OpenRun {
        run_id: workspace.run.to_string(),
        repository: workspace.repository.to_string(),
        workspace_id: workspace.id.clone(),
    }
}

/// Returns the messages of a snapshot. Each is created when the previous one is sent.
fn snapshot_messages(
    base_commit: String,
    snapshot: SnapshotPack,
) -> impl Iterator<Item = Result<wire::SnapshotWorkspaceResponse, Status>> {
    use wire::snapshot_workspace_response::Event;
    let info = wire::SnapshotInfo {
        base_commit,
        branch: snapshot.branch.unwrap_or_default(),
        head_commit: snapshot.head.map(String::from).unwrap_or_default(),
        snapshot_commit: snapshot.commit.to_string(),
        files_changed: snapshot.files_changed,
        omitted: snapshot.omitted,
        ignored: snapshot.ignored,
    };
    let pack = snapshot.pack;
    let chunks = (0..pack.len()).step_by(wire::PACK_CHUNK_BYTES).map(move |start| {
        let rest = &pack[start..];
        Event::PackChunk(rest[..rest.len().min(wire::PACK_CHUNK_BYTES)].to_vec())
    });
    let events = std::iter::once(Event::Info(info)).chain(chunks);
    events.map(|event| Ok(wire::SnapshotWorkspaceResponse { event: Some(event) }))
}
