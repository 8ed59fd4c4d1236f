//! What a tool call costs over gRPC.

use std::time::Duration;

use anyhow::{Context, ensure};
use bootstrap::now;
use domain::{RepositoryName, RunFence, RunId, TicketKey};
use e2e::World;
use grant::{Audience, Grant, Signer};
use proto::executor as wire;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::process::Command;
use tonic::{Request, transport::Channel, transport::Endpoint};
use wire::executor_service_client::ExecutorServiceClient;

use crate::{
    measure::{Samples, say},
    tickets::COMMAND,
};

const KEY_ID: &str = "bench";
const FILE: &str = "ten_kilobytes.txt";
const READS: usize = 1000;
const COMMANDS: usize = 200;

/// A caller with grants of its own, beside the planner.
pub(crate) struct Bench {
    client: ExecutorServiceClient<Channel>,
    signer: Signer,
    run: RunId,
    repository: RepositoryName,
    fence: RunFence,
    workspace: String,
}

impl Bench {
    /// A fresh key under the name that the services are configured with.
    pub(crate) fn keys() -> anyhow::Result<Signer> {
        Ok(Signer::new(KEY_ID, &grant::generate().private_key)?)
    }

    async fn open(world: &World, signer: Signer) -> anyhow::Result<Self> {
        let address = world
            .setting("EXECUTOR__LISTEN")
            .context("the executor's address")?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let mut bench = Self {
            client: ExecutorServiceClient::new(endpoint.connect().await?),
            signer,
            run: RunId::new(TicketKey::jira("ENG-9999")?, 1),
            repository: RepositoryName::new("acme", "shop")?,
            fence: RunFence::new(1, 1, 1),
            workspace: String::new(),
        };
        let message = wire::OpenWorkspaceRequest {
            run_id: bench.run.to_string(),
            fence: Some(bench.fence.into()),
            repository: bench.repository.to_string(),
            gate_url: world
                .setting("PLANNER__GATE_URL")
                .context("the gate's address")?
                .to_owned(),
            gate_grant: bench.grant(Audience::Gate)?,
            base_branch: "main".to_owned(),
            ..wire::OpenWorkspaceRequest::default()
        };
        let request = bench.request(message)?;
        bench.workspace = bench
            .client
            .open_workspace(request)
            .await?
            .into_inner()
            .workspace_id;
        Ok(bench)
    }

    fn grant(&self, audience: Audience) -> anyhow::Result<String> {
        let grant = Grant {
            audience,
            run: self.run.clone(),
            repository: self.repository.clone(),
            workspace: Some(self.workspace.clone()).filter(|id| !id.is_empty()),
            fence: self.fence,
        };
        Ok(self.signer.sign(&grant, now())?.expose_secret().to_owned())
    }

    fn request<T>(&self, message: T) -> anyhow::Result<Request<T>> {
        let mut request = Request::new(message);
        request.set_timeout(Duration::from_secs(60));
        let bearer = format!("Bearer {}", self.grant(Audience::Executor)?).parse()?;
        request.metadata_mut().insert("authorization", bearer);
        Ok(request)
    }

    /// One call to its result, as the planner makes it.
    async fn call(&self, position: u64, name: &str, input: &Value) -> anyhow::Result<()> {
        let message = wire::CallToolRequest {
            workspace_id: self.workspace.clone(),
            fence: Some(self.fence.into()),
            call_id: self.run.call(position).to_string(),
            name: name.to_owned(),
            input_json: input.to_string(),
            commit_time_s: now().unix_s(),
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

    async fn list_tools(&self) -> anyhow::Result<usize> {
        let answer = self
            .client
            .clone()
            .list_tools(wire::ListToolsRequest {})
            .await?
            .into_inner();
        let sizes = answer
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema_json.len());
        Ok(sizes.sum())
    }
}

/// Prints the round trips of a read and of a command with their floors; gives the median of the command.
pub(crate) async fn round_trips(world: &World, signer: Signer) -> anyhow::Result<Duration> {
    let bench = Box::pin(Bench::open(world, signer)).await?;
    let content = "ninety-nine characters of a line of a text file of ten thousand bytes, for the bench alone, ok?   \n";
    let write = json!({"path": FILE, "content": content.repeat(10_000 / content.len())});
    bench.call(1, "write_file", &write).await?;

    let read = json!({"path": FILE});
    Samples::sequential(READS, |number| {
        bench.call(1000 + number as u64, "read_file", &read)
    })
    .await?
    .print("tool_read_file_10kB");
    let bytes = bench.list_tools().await?;
    let lists = Samples::sequential(READS, async |_| bench.list_tools().await.map(drop)).await?;
    lists.print("floor_grpc_list_tools");
    say(&format!("# floor_grpc_list_tools answers with {bytes} bytes"));

    let nothing = json!({"command": "true"});
    Samples::sequential(COMMANDS, |number| {
        bench.call(10_000 + number as u64, "run_command", &nothing)
    })
    .await?
    .print("tool_run_command_true");
    Samples::sequential(COMMANDS, async |_| {
        let status = Command::new("sh").args(["-c", "true"]).status().await?;
        ensure!(status.success(), "sh -c true: {status}");
        Ok(())
    })
    .await?
    .print("floor_sh_true");

    let command = json!({"command": COMMAND});
    let commands = Samples::sequential(COMMANDS, |number| {
        bench.call(20_000 + number as u64, "run_command", &command)
    });
    let median = commands.await?.median();
    let close = wire::CloseWorkspaceRequest {
        workspace_id: bench.workspace.clone(),
        fence: Some(bench.fence.into()),
    };
    bench
        .client
        .clone()
        .close_workspace(bench.request(close)?)
        .await?;
    Ok(median)
}
