//! Simulated executor that only records its calls.

use std::{
    collections::{BTreeSet, VecDeque},
    pin::Pin,
    sync::Arc,
};

use futures::{Stream, StreamExt as _, stream};
use parking_lot::{Mutex, MutexGuard};
use proto::executor::{
    self as wire,
    executor_service_server::{ExecutorService, ExecutorServiceServer},
};
use tokio::sync::watch;
use tokio_stream::wrappers::{TcpListenerStream, WatchStream};
use tonic::{Request, Response, Status};

type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Default)]
struct Books {
    ran: Vec<String>,
    ids: BTreeSet<String>,
    open: u32,
    /// Specification of the last workspace that was requested.
    last_spec: wire::WorkspaceSpec,
    restored: u32,
    committed: bool,
    holds: Option<String>,
    is_full: bool,
    /// True while the first clone of the repository runs.
    is_cloning: bool,
    /// Reason that it does not accept work.
    unready: String,
    /// Number of failures before a workspace closes.
    refused_closes: u32,
    lose_at: Option<String>,
    /// Tool that loses the workspace whenever it runs, and the number of its runs.
    deadly: Option<(String, u32)>,
    /// Status instead of snapshots, and the number of times.
    no_snapshot: Option<(Status, u32)>,
    /// Bytes of each pack, with distinct content; absent: always the same few bytes.
    pack_bytes: Option<usize>,
    packs: u8,
    /// Responses to span requests, in order; absent: it keeps no spans.
    spans: Option<VecDeque<wire::TakeSpansResponse>>,
    /// True if a search for checks lasts until a change is inspected.
    searches_until_inspected: bool,
    /// Span requests that it received.
    asked_for_spans: Vec<wire::TakeSpansRequest>,
}

impl Books {
    fn last_pack(&self) -> Vec<u8> {
        let packs = self.packs;
        self.pack_bytes
            .map_or_else(|| b"PACK".to_vec(), |bytes| vec![packs; bytes])
    }
}

#[derive(Clone)]
pub(super) struct FakeExecutor {
    pub(super) url: String,
    books: Arc<Mutex<Books>>,
    changed: watch::Sender<()>,
    /// Number of inspected changes.
    inspected: watch::Sender<u32>,
    /// True while tools return no result.
    is_held: watch::Sender<bool>,
}

impl FakeExecutor {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let executor = Self {
            url,
            books: Arc::default(),
            changed: watch::Sender::new(()),
            inspected: watch::Sender::new(0),
            is_held: watch::Sender::new(false),
        };
        let server =
            tonic::transport::Server::builder().add_service(ExecutorServiceServer::new(executor.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        executor
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }

    pub(super) fn ran(&self) -> Vec<String> {
        self.books().ran.clone()
    }

    pub(super) fn open(&self) -> u32 {
        self.books().open
    }

    /// Returns the specification of the last workspace that was requested.
    pub(super) fn last_spec(&self) -> wire::WorkspaceSpec {
        self.books().last_spec.clone()
    }

    pub(super) fn restored(&self) -> u32 {
        self.books().restored
    }

    /// Sets whether every slot of the executor is taken.
    pub(super) fn set_full(&self, is_full: bool) {
        self.books().is_full = is_full;
        self.changed.send_replace(());
    }

    /// Sets whether the first clone of the repository runs.
    pub(super) fn set_cloning(&self, is_cloning: bool) {
        self.books().is_cloning = is_cloning;
    }

    /// Reports that it does not accept work, with the reason.
    pub(super) fn set_unready(&self, why: &str) {
        self.books().unready = why.to_owned();
        self.changed.send_replace(());
    }

    /// Fails the next calls that close a workspace.
    pub(super) fn refuse_closes(&self, count: u32) {
        self.books().refused_closes = count;
    }

    /// Holds the run in the last slot, as after an open by a planner that crashed before it recorded that.
    pub(super) fn hold_run_in_the_last_slot(&self, run: &domain::RunId) {
        let mut books = self.books();
        (books.holds, books.is_full) = (Some(run.to_string()), true);
    }

    pub(super) fn lose_workspace_whenever(&self, tool: &str) {
        self.books().deadly = Some((tool.to_owned(), 0));
    }

    /// Returns the number of runs of the deadly tool.
    pub(super) fn deaths(&self) -> u32 {
        self.books().deadly.as_ref().map_or(0, |(_, times)| *times)
    }

    /// Returns snapshots of this size, with distinct content.
    pub(super) fn make_packs_of(&self, bytes: usize) {
        self.books().pack_bytes = Some(bytes);
    }

    /// Answers no search for checks before a change is inspected.
    pub(super) fn search_until_inspected(&self) {
        self.books().searches_until_inspected = true;
    }

    /// Returns the number of inspected changes.
    pub(super) fn inspections(&self) -> u32 {
        *self.inspected.borrow()
    }

    /// Sets whether tools that run return no result.
    pub(super) fn hold_tools(&self, is_held: bool) {
        self.is_held.send_replace(is_held);
    }

    fn next_pack(&self) -> Vec<u8> {
        let mut books = self.books();
        books.packs += 1;
        books.last_pack()
    }

    pub(super) fn keep_nothing(&self, why: Status) {
        self.books().no_snapshot = Some((why, 0));
    }

    /// Returns the number of refused snapshots.
    pub(super) fn refused_snapshots(&self) -> u32 {
        self.books().no_snapshot.as_ref().map_or(0, |(_, times)| *times)
    }

    /// Reports that it keeps spans, and sets the responses to span requests.
    pub(super) fn keep_spans(&self, answers: impl IntoIterator<Item = wire::TakeSpansResponse>) {
        self.books().spans = Some(answers.into_iter().collect());
        self.changed.send_replace(());
    }

    /// Returns the span requests so far.
    pub(super) fn asked_for_spans(&self) -> Vec<wire::TakeSpansRequest> {
        self.books().asked_for_spans.clone()
    }

    pub(super) fn lose_workspace_at(&self, tool: &str) {
        self.books().lose_at = Some(tool.to_owned());
    }
}

impl FakeExecutor {
    /// Records a call of a tool.
    fn note_tool_call(&self, call_id: String, name: &str) -> Result<(), Status> {
        let mut books = self.books();
        if books.lose_at.take_if(|lost| *lost == name).is_some() {
            return Err(Status::not_found("workspace gone"));
        }
        if let Some((_, times)) = books.deadly.as_mut().filter(|(tool, _)| *tool == name) {
            *times += 1;
            return Err(Status::not_found("workspace gone"));
        }
        // An interrupted call that repeats under its id does not run twice.
        if books.ids.insert(call_id) {
            books.ran.push(name.to_owned());
        }
        books.committed |= name == "commit_changes";
        Ok(())
    }

    fn status(&self) -> wire::WatchStatusResponse {
        let books = self.books();
        let held = books.holds.clone().into_iter().map(|run_id| wire::OpenRun {
            run_id,
            repository: "acme/shop".to_owned(),
            workspace_id: "w1".to_owned(),
        });
        wire::WatchStatusResponse {
            started_at: 0,
            free_slots: if books.is_full { 0 } else { 4 },
            total_slots: 4,
            open_runs: held.collect(),
            unready: books.unready.clone(),
            keeps_spans: books.spans.is_some(),
            ..wire::WatchStatusResponse::default()
        }
    }
}

fn check_grant<T>(request: &Request<T>) -> Result<(), Status> {
    let bearer = request
        .metadata()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    match bearer.and_then(|value| value.strip_prefix("Bearer ")) {
        Some(_) => Ok(()),
        None => Err(Status::unauthenticated("no grant")),
    }
}

#[tonic::async_trait]
impl ExecutorService for FakeExecutor {
    type CallToolStream = Events<wire::CallToolResponse>;
    type RunCheckStream = Events<wire::RunCheckResponse>;
    type SnapshotWorkspaceStream = Events<wire::SnapshotWorkspaceResponse>;
    type WatchStatusStream = Events<wire::WatchStatusResponse>;

    async fn open_workspace(
        &self,
        request: Request<tonic::Streaming<wire::OpenWorkspaceRequest>>,
    ) -> Result<Response<wire::OpenWorkspaceResponse>, Status> {
        check_grant(&request)?;
        let (mut parts, mut restored, mut pack) = (request.into_inner(), false, Vec::new());
        let mut run = String::new();
        while let Some(message) = parts.message().await? {
            match message.part.expect("a part") {
                wire::open_workspace_request::Part::Spec(spec) => {
                    (restored, run) = (spec.restore.is_some(), spec.run_id.clone());
                    self.books().last_spec = spec;
                }
                wire::open_workspace_request::Part::PackChunk(chunk) => pack.extend(chunk),
            }
        }
        let mut books = self.books();
        if books.is_full && books.holds.is_none() {
            return Err(Status::resource_exhausted("no free slot"));
        }
        if books.is_cloning {
            let mut status = Status::unavailable("the first clone runs");
            let percent = "40".parse().expect("a percentage");
            status.metadata_mut().insert(proto::executor::NOT_READY, percent);
            return Err(status);
        }
        books.open += 1;
        books.holds = Some(run);
        self.changed.send_replace(());
        if restored {
            assert!(pack == books.last_pack(), "the last snapshot is restored");
            books.restored += 1;
        }
        let tool = |name: &str| wire::ToolSpec {
            name: name.to_owned(),
            description: name.to_owned(),
            input_schema_json: r#"{"type":"object"}"#.to_owned(),
            read_only: false,
        };
        Ok(Response::new(wire::OpenWorkspaceResponse {
            workspace_id: "w1".to_owned(),
            base_commit: "b".repeat(40),
            sandbox_level: wire::SandboxLevel::L0.into(),
            tools: super::RAN.map(tool).to_vec(),
            ..wire::OpenWorkspaceResponse::default()
        }))
    }

    async fn list_tools(
        &self,
        _: Request<wire::ListToolsRequest>,
    ) -> Result<Response<wire::ListToolsResponse>, Status> {
        Err(Status::unimplemented("not used"))
    }

    async fn call_tool(
        &self,
        request: Request<wire::CallToolRequest>,
    ) -> Result<Response<Self::CallToolStream>, Status> {
        check_grant(&request)?;
        let wire::CallToolRequest {
            call_id,
            name,
            server,
            ..
        } = request.into_inner();
        self.note_tool_call(call_id, &name)?;
        let mut held = self.is_held.subscribe();
        let released = held.wait_for(|is_held| !is_held).await;
        drop(released.map_err(|_| Status::cancelled("the executor is gone"))?);
        let result = wire::ToolResult {
            status: wire::ToolStatus::Ok.into(),
            content: match &server {
                Some(server) => {
                    let text = format!("{} of {} did it", server.tool, server.command.join(" "));
                    serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string()
                }
                None => format!("{name} did it"),
            },
            changed: name != "read_file",
            branch: match name.as_str() {
                "create_branch" => "fix/ENG-12-totals".to_owned(),
                _ => String::new(),
            },
            ..wire::ToolResult::default()
        };
        let printed = wire::OutputChunk {
            data: format!("{name} prints this\n").into_bytes(),
        };
        let events = [
            wire::call_tool_response::Event::Output(printed),
            wire::call_tool_response::Event::Result(result),
        ];
        let events = events.map(|event| Ok(wire::CallToolResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(stream::iter(events))))
    }

    async fn list_server_tools(
        &self,
        request: Request<wire::ListServerToolsRequest>,
    ) -> Result<Response<wire::ListServerToolsResponse>, Status> {
        check_grant(&request)?;
        let server = request.into_inner().server.unwrap_or_default();
        if server.command == ["absent"] {
            return Ok(Response::new(wire::ListServerToolsResponse {
                failure: "the server ended before it answered".to_owned(),
                ..wire::ListServerToolsResponse::default()
            }));
        }
        let tool = serde_json::json!({
            "name": "check", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}
        });
        Ok(Response::new(wire::ListServerToolsResponse {
            tools_json: vec![tool.to_string()],
            ..wire::ListServerToolsResponse::default()
        }))
    }

    async fn run_check(
        &self,
        request: Request<wire::RunCheckRequest>,
    ) -> Result<Response<Self::RunCheckStream>, Status> {
        check_grant(&request)?;
        let wire::RunCheckRequest { call_id, command, .. } = request.into_inner();
        let mut books = self.books();
        if books.lose_at.take_if(|lost| *lost == "run_check").is_some() {
            return Err(Status::not_found("workspace gone"));
        }
        if books.ids.insert(call_id) {
            books.ran.push(command);
        }
        let tests = wire::TestReport {
            runner: "pytest".to_owned(),
            passed: 2,
            ..wire::TestReport::default()
        };
        let result = wire::CheckResult {
            outcome: wire::CheckOutcome::Green.into(),
            tree: "d".repeat(40),
            exit_code: Some(0),
            tests: Some(tests),
            ..wire::CheckResult::default()
        };
        let printed = wire::OutputChunk {
            data: b"2 passed in 0.01s\n".to_vec(),
        };
        let events = [
            wire::run_check_response::Event::Output(printed),
            wire::run_check_response::Event::Result(result),
        ];
        let events = events.map(|event| Ok(wire::RunCheckResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(stream::iter(events))))
    }

    async fn find_checks(
        &self,
        request: Request<wire::FindChecksRequest>,
    ) -> Result<Response<wire::FindChecksResponse>, Status> {
        check_grant(&request)?;
        if self.books().searches_until_inspected {
            let mut inspected = self.inspected.subscribe();
            let waited = inspected.wait_for(|count| *count > 0).await;
            waited.map_err(|_| Status::cancelled("the executor is gone"))?;
        }
        let given = request.into_inner().commands.into_iter();
        let candidates = given.map(|command| wire::CheckCandidate {
            command,
            directory: String::new(),
            why: "the repository's rules name it".to_owned(),
            known_at_base: false,
        });
        Ok(Response::new(wire::FindChecksResponse {
            candidates: candidates.collect(),
        }))
    }

    async fn inspect_change(
        &self,
        request: Request<wire::InspectChangeRequest>,
    ) -> Result<Response<wire::InspectChangeResponse>, Status> {
        check_grant(&request)?;
        self.inspected.send_modify(|count| *count += 1);
        Ok(Response::new(wire::InspectChangeResponse {
            tree: "d".repeat(40),
            files: 1,
            product_lines: 2,
            ..wire::InspectChangeResponse::default()
        }))
    }

    async fn snapshot_workspace(
        &self,
        request: Request<wire::SnapshotWorkspaceRequest>,
    ) -> Result<Response<Self::SnapshotWorkspaceStream>, Status> {
        check_grant(&request)?;
        if let Some((why, times)) = &mut self.books().no_snapshot {
            *times += 1;
            return Err(why.clone());
        }
        let committed = self.books().committed;
        let info = wire::SnapshotInfo {
            base_commit: "b".repeat(40),
            branch: if committed {
                "fix/ENG-12-totals".to_owned()
            } else {
                String::new()
            },
            head_commit: if committed { "1".repeat(40) } else { String::new() },
            snapshot_commit: "c".repeat(40),
            files_changed: 1,
            ..wire::SnapshotInfo::default()
        };
        let pack = self.next_pack();
        let chunks = pack.chunks(pack.len().div_ceil(2).min(wire::PACK_CHUNK_BYTES));
        let chunks = chunks.map(|chunk| wire::snapshot_workspace_response::Event::PackChunk(chunk.to_vec()));
        let events: Vec<_> = std::iter::once(wire::snapshot_workspace_response::Event::Info(info))
            .chain(chunks)
            .map(|event| Ok(wire::SnapshotWorkspaceResponse { event: Some(event) }))
            .collect();
        Ok(Response::new(Box::pin(stream::iter(events))))
    }

    async fn seed_context(
        &self,
        request: Request<wire::SeedContextRequest>,
    ) -> Result<Response<wire::SeedContextResponse>, Status> {
        check_grant(&request)?;
        let message = request.into_inner();
        let chunk = wire::SeedChunk {
            path: format!("{}/cart.py", message.modules.join("+")),
            start_line: 3,
            end_line: 9,
            reason: message.query,
            ..wire::SeedChunk::default()
        };
        Ok(Response::new(wire::SeedContextResponse {
            ready: true,
            candidates: vec![chunk.clone(); message.candidates as usize],
            chunks: vec![chunk],
            ..wire::SeedContextResponse::default()
        }))
    }

    async fn close_workspace(
        &self,
        request: Request<wire::CloseWorkspaceRequest>,
    ) -> Result<Response<wire::CloseWorkspaceResponse>, Status> {
        check_grant(&request)?;
        let mut books = self.books();
        if books.refused_closes > 0 {
            books.refused_closes -= 1;
            return Err(Status::unavailable("cut off"));
        }
        (books.open, books.holds) = (0, None);
        drop(books);
        self.changed.send_replace(());
        Ok(Response::new(wire::CloseWorkspaceResponse {}))
    }

    async fn keep_alive(
        &self,
        _: Request<wire::KeepAliveRequest>,
    ) -> Result<Response<wire::KeepAliveResponse>, Status> {
        Ok(Response::new(wire::KeepAliveResponse {}))
    }

    async fn take_spans(
        &self,
        request: Request<wire::TakeSpansRequest>,
    ) -> Result<Response<wire::TakeSpansResponse>, Status> {
        check_grant(&request)?;
        let mut books = self.books();
        books.asked_for_spans.push(request.into_inner());
        let answer = books.spans.as_mut().and_then(VecDeque::pop_front);
        Ok(Response::new(answer.unwrap_or_default()))
    }

    async fn watch_status(
        &self,
        request: Request<wire::WatchStatusRequest>,
    ) -> Result<Response<Self::WatchStatusStream>, Status> {
        check_grant(&request)?;
        let executor = self.clone();
        let statuses = WatchStream::new(self.changed.subscribe()).map(move |()| Ok(executor.status()));
        Ok(Response::new(Box::pin(statuses)))
    }
}
