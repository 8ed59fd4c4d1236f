//! Cost of a tool call over gRPC.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use bootstrap::read_wall_clock;
use domain::{RepositoryName, RunFence, RunId, TicketKey};
use e2e::TestWorld;
use grant::{Grant, GrantAudience, GrantSigner};
use proto::executor as wire;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use testkit::fixture;
use tokio::process::Command;
use tonic::{Request, transport::Channel, transport::Endpoint};
use wire::executor_service_client::ExecutorServiceClient;

use crate::bench::{measure::DurationSamples, tickets::COMMAND};

const KEY_ID: &str = "bench";
pub(crate) const FILE: &str = "ten_kilobytes.txt";
const READS: usize = 1000;
const COMMANDS: usize = 200;

/// Caller of the executor with grants under its own key, in addition to the planner.
pub(crate) struct BenchCaller {
    client: ExecutorServiceClient<Channel>,
    signer: Arc<GrantSigner>,
    gate_url: String,
    run: RunId,
    repository: RepositoryName,
    fence: RunFence,
    /// Base commit; empty before the first opening.
    base: String,
    workspace: String,
}

impl BenchCaller {
    /// Generates a key under the name that the services are configured with.
    pub(crate) fn keys() -> anyhow::Result<GrantSigner> {
        Ok(GrantSigner::new(KEY_ID, &grant::generate_key_pair().private_key)?)
    }

    /// Connects as the run of ticket `number`, without a workspace.
    pub(crate) async fn connect(
        world: &TestWorld,
        signer: &Arc<GrantSigner>,
        repository: &str,
        number: u64,
    ) -> anyhow::Result<Self> {
        let address = world
            .setting("EXECUTOR__LISTEN")
            .context("the executor's address")?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let gate_url = world.setting("PLANNER__GATE_URL");
        Ok(Self {
            client: ExecutorServiceClient::new(endpoint.connect().await?),
            signer: Arc::clone(signer),
            gate_url: gate_url.context("the gate's address")?.to_owned(),
            run: RunId::new(TicketKey::jira(&format!("ENG-{number}"))?, 1),
            repository: repository.parse()?,
            fence: RunFence::new(1, 1, 1),
            base: String::new(),
            workspace: String::new(),
        })
    }

    /// Opens the workspace: the first time at the head of `main`, later at the same commit.
    pub(crate) async fn open(&mut self) -> anyhow::Result<()> {
        self.workspace = String::new();
        let spec = wire::WorkspaceSpec {
            run_id: self.run.to_string(),
            fence: Some(self.fence.into()),
            repository: self.repository.to_string(),
            gate_url: self.gate_url.clone(),
            gate_grant: self.grant(GrantAudience::Gate)?,
            base_commit: self.base.clone(),
            base_branch: "main".to_owned(),
            ..wire::WorkspaceSpec::default()
        };
        let request = self.request(wire::open_request(spec, Vec::new()))?;
        let answer = self.client.open_workspace(request).await?.into_inner();
        (self.workspace, self.base) = (answer.workspace_id, answer.base_commit);
        Ok(())
    }

    /// Makes the gate fetch the repository, as for a run on another executor.
    pub(crate) async fn warm_gate(&self) -> anyhow::Result<()> {
        let url = format!(
            "{}/{}.git/info/refs?service=git-upload-pack",
            self.gate_url, self.repository
        );
        let asked = reqwest::Client::new()
            .get(url)
            .bearer_auth(self.grant(GrantAudience::Gate)?);
        asked.send().await?.error_for_status()?;
        Ok(())
    }

    /// Closes the open workspace.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        let close = wire::CloseWorkspaceRequest {
            workspace_id: self.workspace.clone(),
            fence: Some(self.fence.into()),
        };
        let request = self.request(close)?;
        self.client.clone().close_workspace(request).await?;
        Ok(())
    }

    fn grant(&self, audience: GrantAudience) -> anyhow::Result<String> {
        let grant = Grant {
            audience,
            run: self.run.clone(),
            repository: self.repository.clone(),
            workspace: Some(self.workspace.clone()).filter(|id| !id.is_empty()),
            fence: self.fence,
            network: Vec::new(),
        };
        Ok(self
            .signer
            .sign(&grant, read_wall_clock())?
            .expose_secret()
            .to_owned())
    }

    fn request<T>(&self, message: T) -> anyhow::Result<Request<T>> {
        let mut request = Request::new(message);
        request.set_timeout(Duration::from_secs(60));
        let bearer = format!("Bearer {}", self.grant(GrantAudience::Executor)?).parse()?;
        request.metadata_mut().insert("authorization", bearer);
        Ok(request)
    }

    /// Calls a tool as the planner does, up to its result.
    pub(crate) async fn call(&self, position: u64, name: &str, input: &Value) -> anyhow::Result<()> {
        let message = wire::CallToolRequest {
            workspace_id: self.workspace.clone(),
            fence: Some(self.fence.into()),
            call_id: self.run.call(position).to_string(),
            name: name.to_owned(),
            input_json: input.to_string(),
            commit_time_s: read_wall_clock().unix_s(),
            commit_author: String::new(),
            server: None,
        };
        let mut events = self
            .client
            .clone()
            .call_tool(self.request(message)?)
            .await?
            .into_inner();
        while let Some(event) = events.message().await? {
            if let Some(wire::call_tool_response::Event::Result(result)) = event.event {
                ensure!(
                    result.status() == wire::ToolStatus::Ok,
                    "{name}: {}",
                    result.content
                );
                return Ok(());
            }
        }
        anyhow::bail!("{name} ended without a result")
    }

    /// Takes a snapshot as the planner does. Returns the bytes of its pack.
    pub(crate) async fn snapshot(&self) -> anyhow::Result<usize> {
        let message = wire::SnapshotWorkspaceRequest {
            workspace_id: self.workspace.clone(),
            fence: Some(self.fence.into()),
            commit_time_s: read_wall_clock().unix_s(),
        };
        let mut client = self.client.clone();
        let mut events = client
            .snapshot_workspace(self.request(message)?)
            .await?
            .into_inner();
        let mut bytes = 0;
        while let Some(event) = events.message().await? {
            if let Some(wire::snapshot_workspace_response::Event::PackChunk(chunk)) = event.event {
                bytes += chunk.len();
            }
        }
        Ok(bytes)
    }

    /// Calls the executor for nothing: signature, fence and workspace are checked as for a tool, and the answer
    /// is empty.
    pub(crate) async fn call_nothing(&self) -> anyhow::Result<()> {
        let message = wire::KeepAliveRequest {
            workspace_id: self.workspace.clone(),
            fence: Some(self.fence.into()),
        };
        self.client.clone().keep_alive(self.request(message)?).await?;
        Ok(())
    }
}

/// Prints the round trips of a read and of a command with their floors. Returns the command's median.
pub(crate) async fn round_trips(world: &TestWorld, signer: &Arc<GrantSigner>) -> anyhow::Result<Duration> {
    let mut bench = Box::pin(BenchCaller::connect(world, signer, fixture::REPOSITORY, 9999)).await?;
    bench.open().await?;
    let write = json!({"path": FILE, "content": ten_kilobytes()});
    bench.call(1, "write_file", &write).await?;

    let read = json!({"path": FILE});
    // Each call has another id, because the executor answers a known id with the stored result.
    DurationSamples::sequential(READS, |number| {
        bench.call(1000 + number as u64, "read_file", &read)
    })
    .await?
    .print("tool_read_file_10kB");
    DurationSamples::sequential(READS, async |_| bench.call_nothing().await)
        .await?
        .print("floor_grpc_empty_call");

    let nothing = json!({"command": "true"});
    DurationSamples::sequential(COMMANDS, |number| {
        bench.call(10_000 + number as u64, "run_command", &nothing)
    })
    .await?
    .print("tool_run_command_true");
    for shell in ["sh", "bash"] {
        let starts = DurationSamples::sequential(COMMANDS, async |_| {
            let status = Command::new(shell).args(["-c", "true"]).status().await?;
            ensure!(status.success(), "{shell} -c true: {status}");
            Ok(())
        });
        starts.await?.print(&format!("floor_{shell}_true"));
    }

    let command = json!({"command": COMMAND});
    let commands = DurationSamples::sequential(COMMANDS, |number| {
        bench.call(20_000 + number as u64, "run_command", &command)
    });
    let median = commands.await?.median();
    bench.close().await?;
    Ok(median)
}

/// Content of the file for reads.
pub(crate) fn ten_kilobytes() -> String {
    let line = "ninety-nine characters of a line of a text file of ten thousand bytes, for the bench alone, ok?   \n";
    line.repeat(10_000 / line.len())
}
