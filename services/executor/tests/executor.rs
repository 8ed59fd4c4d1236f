//! Tests of the executor over gRPC, with a real repository behind a smart HTTP remote, and with real
//! commands.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics on whatever it does not expect, and prints its rows of a table"
)]

#[path = "executor/attacks.rs"]
mod attacks;
#[path = "executor/bounds.rs"]
mod bounds;
#[path = "executor/canary.rs"]
mod canary;
#[path = "executor/checks.rs"]
mod checks;
#[path = "executor/ecosystems.rs"]
mod ecosystems;
#[path = "executor/egress.rs"]
mod egress;
#[path = "executor/external_content.rs"]
mod external_content;
#[path = "executor/gits.rs"]
mod gits;
#[path = "../../../crates/git/tests/support/http_backend.rs"]
mod http_backend;
#[path = "executor/isolation.rs"]
mod isolation;
#[path = "executor/large.rs"]
mod large;
#[path = "executor/mcp_commands.rs"]
mod mcp_commands;
#[path = "executor/mirrors.rs"]
mod mirrors;
#[path = "executor/parsing.rs"]
mod parsing;
#[path = "executor/planted_config.rs"]
mod planted_config;
#[path = "executor/process.rs"]
mod process;
#[path = "executor/resources.rs"]
mod resources;
#[path = "executor/retrieval.rs"]
mod retrieval;
mod runner;
#[path = "executor/runners.rs"]
mod runners;
#[path = "executor/setups.rs"]
mod setups;
#[path = "executor/snapshots.rs"]
mod snapshots;
#[path = "executor/spans.rs"]
mod spans;
#[path = "executor/tls.rs"]
mod tls;
#[path = "executor/worlds.rs"]
mod worlds;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use domain::{CommitId, RunFence, RunId, TicketKey};
use executor::{Config, ExecutorSettings};
use grant::{Grant, GrantAudience, GrantSigner};
use http_backend::HttpBackend;
use proto::executor::{
    CallToolRequest, CallToolResponse, CloseWorkspaceRequest, ListToolsRequest, OpenWorkspaceResponse,
    SandboxLevel, SnapshotInfo, SnapshotRef, SnapshotWorkspaceRequest, ToolResult, ToolStatus,
    WatchStatusRequest, WatchStatusResponse, WorkspaceSpec, call_tool_response,
    executor_service_client::ExecutorServiceClient, open_request, snapshot_workspace_response,
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Code, Request, Status, Streaming, transport::Channel};

struct World {
    folder: TempDir,
    signer: GrantSigner,
    gate: HttpBackend,
    base: CommitId,
    address: std::net::SocketAddr,
    client: ExecutorServiceClient<Channel>,
    stop: CancellationToken,
    server: tokio::task::JoinHandle<anyhow::Result<()>>,
    _guard: DropGuard,
}

/// An open workspace, as seen by the planner that holds one fence.
#[derive(Clone)]
struct Session {
    client: ExecutorServiceClient<Channel>,
    token: String,
    fence: RunFence,
    id: String,
}

fn seed_remote(folder: &TempDir) -> CommitId {
    let remote = git::BareRepository::init_bare(&folder.path().join("remote/acme/shop.git")).unwrap();
    let git = remote.objects();
    let mut root = git.treebuilder(None).unwrap();
    let blob = |text: &str| git.blob(text.as_bytes()).unwrap();
    root.insert("README.md", blob("# Shop\n"), 0o100_644).unwrap();
    root.insert("AGENTS.md", blob("Be brief.\n"), 0o100_644).unwrap();
    root.insert(".gitignore", blob("ignored/\n"), 0o100_644).unwrap();
    let tree = git.find_tree(root.write().unwrap()).unwrap();
    let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
    let id = git
        .commit(Some("refs/heads/main"), &who, &who, "first", &tree, &[])
        .unwrap();
    id.to_string().parse().unwrap()
}

fn build_config(folder: &std::path::Path, address: std::net::SocketAddr, pair: grant::KeyPair) -> Config {
    Config {
        git: git::FetchSettings::default(),
        executor: ExecutorSettings {
            listen: address,
            metrics_listen: None,
            data_dir: folder.join("data"),
            slots: 1,
            grant_keys: BTreeMap::from([(pair.id, pair.public_key)]),
            min_level: domain::SandboxLevel::L0,
            launcher: Some(PathBuf::from(env!("CARGO_BIN_EXE_launcher"))),
            hidden: vec![folder.to_owned(), folder.join("remote")],
            limits: executor::CommandLimits::default(),
            exposed: Vec::new(),
            forbidden_addresses: Vec::new(),
            allow_unlimited_processes: true,
            runner_socket: None,
            setup_cache_mib: 1024,
            lfs_cache_mib: 64,
            disk_floor_mib: 0,
            disk_reserve_mib: 0,
            snapshot_mib: 32,
            index: true,
            without: Vec::new(),
        },
        telemetry: serde_json::from_value(json!({})).unwrap(),
        tls: None,
    }
}

impl World {
    async fn start(slots: u32) -> Self {
        Self::start_without(slots, Vec::new()).await
    }

    async fn start_without(slots: u32, without: Vec<executor::ConfinementMechanism>) -> Self {
        Self::start_as(slots, |_, settings| settings.without = without).await
    }

    async fn start_as(slots: u32, change: impl FnOnce(&std::path::Path, &mut ExecutorSettings)) -> Self {
        let folder = TempDir::new().unwrap();
        let base = seed_remote(&folder);
        let pair = grant::generate_key_pair();
        let signer = GrantSigner::new(&pair.id, &pair.private_key).unwrap();
        let gate = HttpBackend::start(folder.path().join("remote"), "Bearer gate-grant").await;
        gate.serve_digests(true);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = build_config(folder.path(), address, pair);
        config.executor.slots = slots;
        change(folder.path(), &mut config.executor);
        let stop = CancellationToken::new();
        let server = tokio::spawn(bootstrap::serve_app::<executor::ExecutorApp>(
            config,
            listener,
            stop.clone(),
        ));
        let client = ExecutorServiceClient::connect(format!("http://{address}"))
            .await
            .unwrap();
        let guard = stop.clone().drop_guard();
        Self {
            folder,
            signer,
            gate,
            base,
            address,
            client,
            stop,
            server,
            _guard: guard,
        }
    }

    /// Token that gives access to the status and the list of tools.
    fn status_token(&self) -> String {
        let token = self.signer.sign_status(bootstrap::read_wall_clock()).unwrap();
        token.expose_secret().to_owned()
    }

    fn token(
        &self,
        run: &RunId,
        workspace: Option<String>,
        fence: RunFence,
        audience: GrantAudience,
    ) -> String {
        let repository = "acme/shop".parse().unwrap();
        let grant = Grant {
            audience,
            run: run.clone(),
            repository,
            workspace,
            fence,
            network: Vec::new(),
        };
        self.signer
            .sign(&grant, bootstrap::read_wall_clock())
            .unwrap()
            .expose_secret()
            .to_owned()
    }

    /// Number of folders in a part of the data folder.
    fn count_folders(&self, part: &str) -> usize {
        std::fs::read_dir(self.folder.path().join("data").join(part))
            .unwrap()
            .count()
    }

    /// Waits until a part of the data folder has this number of folders, at most a minute.
    async fn await_folders(&self, part: &str, wanted: usize) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while self.count_folders(part) != wanted {
            let found = self.count_folders(part);
            assert!(
                tokio::time::Instant::now() < deadline,
                "{part}: {found}, wanted {wanted}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn try_open(
        &self,
        number: u64,
        fence: RunFence,
        change: impl FnOnce(&mut WorkspaceSpec),
    ) -> Result<(Session, OpenWorkspaceResponse), Status> {
        self.try_restore(number, fence, Vec::new(), change).await
    }

    async fn try_restore(
        &self,
        number: u64,
        fence: RunFence,
        pack: Vec<u8>,
        change: impl FnOnce(&mut WorkspaceSpec),
    ) -> Result<(Session, OpenWorkspaceResponse), Status> {
        let run = build_run_id(number);
        let mut spec = WorkspaceSpec {
            egress_url: String::new(),
            egress_grant: String::new(),
            run_id: run.to_string(),
            fence: Some(fence.into()),
            repository: "acme/shop".to_owned(),
            gate_url: self.gate.url.clone(),
            gate_grant: "gate-grant".to_owned(),
            base_commit: self.base.to_string(),
            base_branch: "main".to_owned(),
            restore: None,
            setup: Vec::new(),
            programs: Vec::new(),
            template_path: String::new(),
            any_names: false,
            lfs: false,
            merged_commit: String::new(),
            reported_base: String::new(),
        };
        change(&mut spec);
        let request = add_bearer_token(
            &self.token(&run, None, fence, GrantAudience::Executor),
            open_request(spec, pack),
        );
        let answer = self.client.clone().open_workspace(request).await?.into_inner();
        let id = answer.workspace_id.clone();
        let token = self.token(&run, Some(id.clone()), fence, GrantAudience::Executor);
        Ok((
            Session {
                client: self.client.clone(),
                token,
                fence,
                id,
            },
            answer,
        ))
    }

    /// Opens a workspace with the first fence of its run.
    async fn open_with(
        &self,
        number: u64,
        change: impl FnOnce(&mut WorkspaceSpec),
    ) -> (Session, OpenWorkspaceResponse) {
        let opened = self.try_open(number, RunFence::new(1, 5, 1), change);
        opened.await.unwrap()
    }

    async fn open(&self, number: u64) -> Session {
        self.open_with(number, |_| {}).await.0
    }

    async fn watch_status(&self) -> Streaming<WatchStatusResponse> {
        let request = add_bearer_token(&self.status_token(), WatchStatusRequest {});
        let watched = self.client.clone().watch_status(request).await;
        watched.unwrap().into_inner()
    }
}

impl Session {
    async fn start(
        &self,
        id: &str,
        name: &str,
        input: &Value,
    ) -> Result<Streaming<CallToolResponse>, Status> {
        self.start_within(id, name, input, None).await
    }

    async fn start_within(
        &self,
        id: &str,
        name: &str,
        input: &Value,
        limit: Option<Duration>,
    ) -> Result<Streaming<CallToolResponse>, Status> {
        let call = CallToolRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            call_id: id.to_owned(),
            name: name.to_owned(),
            input_json: input.to_string(),
            commit_time_s: 1_790_000_000,
            commit_author: String::new(),
            server: None,
        };
        let mut request = add_bearer_token(&self.token, call);
        if let Some(limit) = limit {
            let text = format!("{}m", limit.as_millis());
            request
                .metadata_mut()
                .insert("grpc-timeout", text.parse().unwrap());
        }
        Ok(self.client.clone().call_tool(request).await?.into_inner())
    }

    async fn call(&self, id: &str, name: &str, input: Value) -> ToolResult {
        await_result(self.start(id, name, &input).await.unwrap()).await
    }

    async fn ok(&self, id: &str, name: &str, input: Value) -> ToolResult {
        let result = self.call(id, name, input).await;
        assert_eq!(result.status(), ToolStatus::Ok, "{}", result.content);
        result
    }

    async fn shell(&self, id: &str, command: &str) -> String {
        self.ok(id, "run_command", json!({ "command": command }))
            .await
            .content
    }

    async fn snapshot(&self) -> (SnapshotInfo, Vec<u8>) {
        let request = SnapshotWorkspaceRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            commit_time_s: 1_790_000_000,
        };
        let request = add_bearer_token(&self.token, request);
        let mut stream = self
            .client
            .clone()
            .snapshot_workspace(request)
            .await
            .unwrap()
            .into_inner();
        let (mut info, mut pack) = (None, Vec::new());
        while let Some(message) = stream.message().await.unwrap() {
            match message.event.unwrap() {
                snapshot_workspace_response::Event::Info(found) => info = Some(found),
                snapshot_workspace_response::Event::PackChunk(chunk) => pack.extend(chunk),
            }
        }
        (info.unwrap(), pack)
    }

    async fn close(&self) {
        let request = CloseWorkspaceRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
        };
        self.client
            .clone()
            .close_workspace(add_bearer_token(&self.token, request))
            .await
            .unwrap();
    }
}

fn build_run_id(number: u64) -> RunId {
    RunId::new(TicketKey::jira(&format!("ENG-{number}")).unwrap(), 1)
}

fn add_bearer_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

async fn await_result(mut stream: Streaming<CallToolResponse>) -> ToolResult {
    while let Some(message) = stream.message().await.unwrap() {
        if let call_tool_response::Event::Result(result) = message.event.unwrap() {
            return result;
        }
    }
    panic!("the stream ended without a result")
}

/// Waits for the first chunk of output, so that the test knows that its command runs.
async fn await_first_output(stream: &mut Streaming<CallToolResponse>) -> String {
    match stream.message().await.unwrap().unwrap().event.unwrap() {
        call_tool_response::Event::Output(chunk) => String::from_utf8(chunk.data).unwrap(),
        call_tool_response::Event::Result(result) => panic!("ended early: {}", result.content),
    }
}

/// Returns true while a process has `marker` among its arguments.
fn has_process(marker: &str) -> bool {
    let mut processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker)
    })
}

/// Waits until a process has `marker` among its arguments, or until none has.
async fn wait_for_process(marker: &str, is_there: bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while has_process(marker) != is_there {
        assert!(
            tokio::time::Instant::now() < deadline,
            "{marker} runs: {}",
            !is_there
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until no process has `marker` among its arguments.
async fn wait_until_gone(marker: &str) {
    wait_for_process(marker, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn committed_change_restores_in_other_workspace() {
    let world = World::start(4).await;
    let (session, answer) = world.open_with(1, |_| {}).await;
    assert_eq!(
        (answer.existing, answer.instructions.as_str()),
        (false, "Be brief.\n")
    );
    assert_eq!(answer.tools.len(), 15);
    session
        .ok("c1", "create_branch", json!({ "branch_name": "feat/ENG-1-x" }))
        .await;
    let written = session
        .ok(
            "c2",
            "write_file",
            json!({ "path": "a/new.txt", "content": "new\n" }),
        )
        .await;
    assert!(written.changed);
    let read = session
        .ok("c3", "read_file", json!({ "path": "a/new.txt" }))
        .await;
    assert!(!read.changed);
    let status = session.shell("c4", "git status --short && pwd").await;
    assert!(status.starts_with("exit code: 0\n?? a/\n"), "{status}");
    let committed = session
        .ok("c5", "commit_changes", json!({ "message": "Add a file" }))
        .await;
    assert_eq!(committed.branch, "feat/ENG-1-x");
    session
        .shell(
            "c6",
            "echo draft > draft.txt; mkdir ignored; echo x > ignored/x; rm README.md",
        )
        .await;
    let (info, pack) = session.snapshot().await;
    assert_eq!(
        (info.head_commit.as_str(), info.files_changed),
        (committed.head_commit.as_str(), 3)
    );
    assert_eq!(session.snapshot().await.0.snapshot_commit, info.snapshot_commit);
    session.close().await;

    let restore = SnapshotRef {
        branch: info.branch.clone(),
        head_commit: info.head_commit.clone(),
        snapshot_commit: info.snapshot_commit.clone(),
    };
    let opened = world
        .try_restore(1, RunFence::new(1, 6, 1), pack, |request| {
            request.restore = Some(restore)
        })
        .await;
    let second = opened.unwrap().0;
    assert_ne!(second.id, session.id);
    let listing = second
        .shell("d1", "cat a/new.txt draft.txt; ls; git log --format=%s -1")
        .await;
    assert_eq!(
        listing,
        "exit code: 0\nnew\ndraft\nAGENTS.md\na\ndraft.txt\nAdd a file\n"
    );
    assert_eq!(second.snapshot().await.0.snapshot_commit, info.snapshot_commit);
    let diff = second.call("d2", "diff", json!({})).await.content;
    for shown in ["3 file(s) changed", "+draft", "-# Shop"] {
        assert!(diff.contains(shown), "{shown}: {diff}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_larger_than_message_is_restored() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let made = session
        .shell(
            "c1",
            "head -c 20000000 /dev/urandom > big.bin && sha256sum big.bin",
        )
        .await;
    let (info, pack) = session.snapshot().await;
    assert!(pack.len() > 20_000_000);
    session.close().await;
    let restore = SnapshotRef {
        snapshot_commit: info.snapshot_commit,
        ..SnapshotRef::default()
    };
    let opened = world
        .try_restore(1, RunFence::new(1, 6, 1), pack, |spec| {
            spec.restore = Some(restore)
        })
        .await;
    let second = opened.unwrap().0;
    assert_eq!(second.shell("d1", "sha256sum big.bin").await, made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_call_id_does_not_run_again() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let command = json!({ "command": "echo once >> log; sleep 0.3; cat log" });
    let first = session.start("c1", "run_command", &command).await.unwrap();
    let second = session.start("c1", "run_command", &command).await.unwrap();
    let (first, second) = tokio::join!(await_result(first), await_result(second));
    assert_eq!(first.content, "exit code: 0\nonce\n");
    assert_eq!(second, first);
    assert_eq!(session.call("c1", "run_command", command).await, first);
    assert_eq!(session.shell("c2", "cat log").await, "exit code: 0\nonce\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_command_started_outlives_it() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let marker = "86017.125";
    let daemon = format!("(setsid sh -c 'sleep {marker} & sleep {marker}' &) ; echo started");
    assert_eq!(session.shell("c1", &daemon).await, "exit code: 0\nstarted\n");
    wait_until_gone(marker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_call_is_killed_and_interrupted() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let marker = "86017.250";
    let command = json!({ "command": format!("setsid sleep {marker} & echo running; sleep {marker}") });
    let mut stream = session.start("c1", "run_command", &command).await.unwrap();
    assert_eq!(await_first_output(&mut stream).await, "running\n");
    drop(stream);
    wait_until_gone(marker).await;
    let result = session.call("c1", "run_command", command).await;
    assert_eq!(result.status(), ToolStatus::Interrupted);
    assert!(result.content.contains("running"), "{}", result.content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_interrupts_call_timeout_ends_command() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let command = json!({ "command": "sleep 86017.375" });
    // Long enough for the start of the call on a loaded machine.
    let limit = Some(Duration::from_secs(2));
    let cut = await_result(
        session
            .start_within("c1", "run_command", &command, limit)
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(cut.status(), ToolStatus::Interrupted);
    let command = json!({ "command": "echo early; sleep 86017.375", "timeout_s": 1 });
    let late = session.call("c2", "run_command", command).await;
    assert_eq!(late.status(), ToolStatus::Error);
    assert!(
        late.content.contains("killed after 1 s") && late.content.contains("early"),
        "{}",
        late.content
    );
    wait_until_gone("86017.375").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_fence_cancels_older_calls() {
    let world = World::start(1).await;
    let old = world.open(1).await;
    let command = json!({ "command": "echo running; sleep 86017.5" });
    let mut stream = old.start("c1", "run_command", &command).await.unwrap();
    await_first_output(&mut stream).await;
    let (new, answer) = world.try_open(1, RunFence::new(1, 5, 2), |_| {}).await.unwrap();
    assert!(answer.existing && new.id == old.id);
    assert_eq!(await_result(stream).await.status(), ToolStatus::Interrupted);
    wait_until_gone("86017.5").await;
    let refused = old
        .start("c2", "read_file", &json!({ "path": "README.md" }))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    new.ok("c2", "read_file", json!({ "path": "README.md" })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grant_opens_one_workspace_only() {
    let world = World::start(2).await;
    let session = world.open(1).await;
    let other = world.open(2).await;
    let input = json!({ "path": "README.md" });
    let code = async |session: Session| session.start("x", "read_file", &input).await.unwrap_err().code();
    assert_eq!(
        code(Session {
            token: "nonsense".to_owned(),
            ..session.clone()
        })
        .await,
        Code::Unauthenticated
    );
    assert_eq!(
        code(Session {
            token: other.token,
            ..session.clone()
        })
        .await,
        Code::PermissionDenied
    );
    assert_eq!(
        code(Session {
            fence: RunFence::new(9, 9, 9),
            ..session.clone()
        })
        .await,
        Code::PermissionDenied
    );
    let gate = world.token(
        &build_run_id(1),
        Some(session.id.clone()),
        session.fence,
        GrantAudience::Gate,
    );
    assert_eq!(
        code(Session {
            token: gate,
            ..session.clone()
        })
        .await,
        Code::Unauthenticated
    );
    let watch = async |token: Option<String>| {
        let request = token.map_or_else(
            || Request::new(WatchStatusRequest {}),
            |token| add_bearer_token(&token, WatchStatusRequest {}),
        );
        world
            .client
            .clone()
            .watch_status(request)
            .await
            .err()
            .unwrap()
            .code()
    };
    assert_eq!(watch(None).await, Code::Unauthenticated);
    assert_eq!(watch(Some(session.token.clone())).await, Code::Unauthenticated);
    let listed = world.client.clone().list_tools(ListToolsRequest {}).await;
    assert_eq!(listed.err().unwrap().code(), Code::Unauthenticated);
    session.close().await;
    session.close().await;
    assert_eq!(code(session).await, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reopening_workspace_takes_no_slot() {
    let world = World::start(1).await;
    let mut statuses = world.watch_status().await;
    let status = statuses.message().await.unwrap().unwrap();
    assert_eq!((status.free_slots, status.total_slots), (1, 1));
    assert_eq!(
        (status.version.as_str(), status.unready.as_str()),
        (env!("CARGO_PKG_VERSION"), "")
    );
    assert!(
        status.programs.iter().any(|name| name.starts_with("python3")),
        "what commands find is reported: {:?}",
        status.programs
    );
    assert_eq!(status.open_runs, []);
    let fence = RunFence::new(1, 5, 1);
    let (one, two) = tokio::join!(world.try_open(1, fence, |_| {}), world.try_open(1, fence, |_| {}));
    assert_eq!(one.unwrap().0.id, two.unwrap().0.id);
    let full = world.try_open(2, fence, |_| {}).await.err().unwrap();
    assert_eq!(full.code(), Code::ResourceExhausted);
    let status = statuses.message().await.unwrap().unwrap();
    assert_eq!(
        (status.free_slots, status.warm_repositories),
        (0, vec!["acme/shop".to_owned()])
    );
    let open: Vec<_> = status.open_runs.iter().map(|open| &open.run_id).collect();
    assert_eq!(open, [&build_run_id(1).to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_clone_names_its_reason() {
    let world = World::start(1).await;
    let fence = RunFence::new(1, 5, 1);
    let missing = "0123456789012345678901234567890123456789".to_owned();
    let error = world
        .try_open(1, fence, |request| request.base_commit = missing)
        .await
        .err()
        .unwrap();
    assert_eq!(
        (error.code(), error.message().contains("012345678901")),
        (Code::NotFound, true),
        "{error}"
    );
    let wrong = |request: &mut WorkspaceSpec| {
        request.base_commit.clear();
        request.gate_grant = "wrong".to_owned();
    };
    let error = world.try_open(1, fence, wrong).await.err().unwrap();
    assert_eq!(error.code(), Code::PermissionDenied, "{error}");
    let nowhere = |request: &mut WorkspaceSpec| {
        request.base_commit.clear();
        request.gate_url = "http://127.0.0.1:1".to_owned();
    };
    let error = world.try_open(1, fence, nowhere).await.err().unwrap();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    world
        .try_open(1, fence, |request| request.base_commit.clear())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_setup_command_shows_log() {
    let world = World::start(2).await;
    let fence = RunFence::new(1, 5, 1);
    let setup = |commands: &[&str]| {
        commands
            .iter()
            .map(|command| (*command).to_owned())
            .collect::<Vec<_>>()
    };
    let good = setup(&["echo one > ignored.txt", "echo two"]);
    let (session, answer) = world
        .try_open(1, fence, |request| request.setup = good)
        .await
        .unwrap();
    let result = answer.setup.unwrap();
    assert!(!result.failed && result.log_tail.contains("two"), "{result:?}");
    assert_eq!(
        session.shell("c1", "cat ignored.txt").await,
        "exit code: 0\none\n"
    );
    let bad = setup(&["echo broken; exit 3", "echo never"]);
    let answer = world
        .try_open(2, fence, |request| request.setup = bad)
        .await
        .unwrap()
        .1;
    let result = answer.setup.unwrap();
    assert!(result.failed && result.log_tail.contains("broken") && !result.log_tail.contains("never"));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_program_fails_setup_by_name() {
    let world = World::start(3).await;
    let fence = RunFence::new(1, 5, 1);
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let there = world.try_open(1, fence, |spec| spec.programs = names(&["sh", "git"]));
    assert!(!there.await.unwrap().1.setup.unwrap().failed);
    let lacking = world.try_open(2, fence, |spec| {
        spec.programs = names(&["sh", "no-such-compiler"])
    });
    let result = lacking.await.unwrap().1.setup.unwrap();
    assert!(
        result.failed && result.log_tail.contains("has no no-such-compiler."),
        "{}",
        result.log_tail
    );
    let hostile = world.try_open(3, fence, |spec| spec.programs = names(&["x; rm -rf ."]));
    assert_eq!(hostile.await.err().unwrap().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_have_clean_isolated_environment() {
    let world = World::start(2).await;
    let session = world.open(1).await;
    let _other = world.open(2).await;
    let environment = session
        .shell(
            "c1",
            "env | cut -d= -f1 | grep -v -e ^RUSTUP_ -e ^JAVA_HOME -e ^GOROOT | sort | tr '\\n' ' '",
        )
        .await;
    assert_eq!(
        environment,
        "exit code: 0\nCI GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM HOME LC_CTYPE PATH PWD SHLVL TERM TMPDIR _ "
    );
    let reach = format!(
        "cat {}; touch $(head -n 1 $(git rev-parse --git-common-dir)/objects/info/alternates)/x; touch /etc/x",
        find_second_readme(&world)
    );
    let text = session.shell("c2", &format!("{reach}; true")).await;
    assert!(!text.contains("# Shop"), "{text}");
    let refused = text.matches("Permission denied").count()
        + text.matches("Read-only file system").count()
        + text.matches("No such file").count();
    assert_eq!(refused, 3, "{text}");
    let rename = "echo fine > $TMPDIR/y && python3 -c 'import os; os.rename(os.environ[\"TMPDIR\"] + \"/y\", \"z\")'; cat z";
    assert!(session.shell("c3", rename).await.ends_with("fine\n"));
}

/// Path of a file in the workspace that was opened second.
fn find_second_readme(world: &World) -> String {
    let file = world
        .folder
        .path()
        .join("data/workspaces/acme.shop.1/tree/README.md");
    assert!(file.is_file());
    file.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_without_namespaces_stay_in_workspace() {
    let world = World::start_without(2, vec![executor::ConfinementMechanism::Namespaces]).await;
    let (session, _other) = (world.open(1).await, world.open(2).await);
    let reach = format!(
        "cat {}; touch /tmp/escaped; touch $(head -n 1 $(git rev-parse --git-common-dir)/objects/info/alternates)/x",
        find_second_readme(&world)
    );
    let text = session
        .shell(
            "c1",
            &format!("{reach}; echo fine > $TMPDIR/y && mv $TMPDIR/y z && cat z"),
        )
        .await;
    assert_eq!(text.matches("Permission denied").count(), 3, "{text}");
    assert!(text.contains("\nfine\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_report_actual_sandbox_level() {
    for (without, level) in [
        (vec![], SandboxLevel::L1),
        (vec![executor::ConfinementMechanism::Seccomp], SandboxLevel::L0),
    ] {
        let world = World::start_without(1, without).await;
        let session = world.open(1).await;
        assert_eq!(
            session
                .ok("c1", "run_command", json!({ "command": "true" }))
                .await
                .sandbox_level(),
            level
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_checkout_serves_next_run() {
    let world = World::start(3).await;
    let first = world.open(1).await;
    world.await_folders("ready", 1).await;
    first
        .shell("c1", "echo mine > README.md; echo x > ignored.txt")
        .await;
    let second = world.open(2).await;
    let text = second
        .shell(
            "c1",
            "git status --short; cat README.md; ls -A; git log --format=%s",
        )
        .await;
    assert_eq!(
        text,
        "exit code: 0\n# Shop\n.git\n.gitignore\nAGENTS.md\nREADME.md\nfirst\n"
    );
    assert!(
        second
            .ok("c2", "write_file", json!({ "path": "README.md", "content": "x" }))
            .await
            .changed
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untouched_workspace_serves_next_run() {
    let world = World::start(3).await;
    let first = world.open(1).await;
    world.await_folders("ready", 1).await;
    first.close().await;
    world.await_folders("ready", 2).await;
    assert_eq!(world.count_folders("workspaces"), 0);
    // Of two kept checkouts, the second one is the folder of the first run.
    let (second, third) = (world.open(2).await, world.open(3).await);
    for session in [&second, &third] {
        let text = session.shell("c1", "git status --short; ls -A").await;
        assert_eq!(text, "exit code: 0\n.git\n.gitignore\nAGENTS.md\nREADME.md\n");
    }
    world.await_folders("ready", 1).await;
    for session in [second, third] {
        session.close().await;
    }
    world.await_folders("workspaces", 0).await;
    assert_eq!(
        world.count_folders("ready"),
        1,
        "a folder that a command used is deleted"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_workspace_serves_no_other_run() {
    let world = World::start(3).await;
    let first = world.open(1).await;
    first.shell("c1", "echo mine > new.txt").await;
    let (info, pack) = first.snapshot().await;
    first.close().await;
    let restore = SnapshotRef {
        snapshot_commit: info.snapshot_commit,
        ..SnapshotRef::default()
    };
    let opened = world
        .try_restore(1, RunFence::new(1, 6, 1), pack, |spec| {
            spec.restore = Some(restore)
        })
        .await;
    let (restored, _) = opened.unwrap();
    world.await_folders("workspaces", 1).await;
    world.await_folders("ready", 1).await;
    restored.close().await;
    world.await_folders("workspaces", 0).await;
    assert_eq!(world.count_folders("ready"), 1, "its folder is deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_tool_is_model_error() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let result = session.call("c1", "delete_everything", json!({})).await;
    assert_eq!(result.status(), ToolStatus::Error);
    assert!(result.content.contains("run_command"), "{}", result.content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_executor_reports_drain_and_finishes() {
    let world = World::start(2).await;
    let session = world.open(1).await;
    let mut statuses = world.watch_status().await;
    statuses.message().await.unwrap();
    let command = json!({ "command": "echo running; sleep 0.5; echo done" });
    let mut stream = session.start("c1", "run_command", &command).await.unwrap();
    await_first_output(&mut stream).await;
    world.stop.cancel();
    assert!(statuses.message().await.unwrap().unwrap().draining);
    assert_eq!(statuses.message().await.unwrap(), None);
    assert_eq!(
        await_result(stream).await.content,
        "exit code: 0\nrunning\ndone\n"
    );
    drop((session, statuses));
    world.server.await.unwrap().unwrap();
    assert_eq!(
        std::fs::read_dir(world.folder.path().join("data/workspaces"))
            .unwrap()
            .count(),
        0
    );
}
