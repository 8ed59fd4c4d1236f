//! Start of the planner: validation of its settings, and connections to the services that it needs, with
//! retries for a minute.

use std::{net::SocketAddr, sync::Arc};

use bootstrap::{ServiceConfig, service, settings::Error, span_forwarder::SpanForwarder};
use grant::GrantSigner;
use lease::TicketLeases;
use mcp::McpServers;
use queue::Queue;
use tokio_util::sync::CancellationToken;

use crate::budgets::SharedBudgets;
use crate::config::Config;
use crate::driver::{ImageCache, RunDriver};
use crate::embeddings::EmbeddingClient;
use crate::executors::{ExecutorConnector, ExecutorFleet};
use crate::mcp_calls::McpCaller;
use crate::model::{self, ModelClients};
use crate::pools::PoolKeeper;
use crate::run::RetryPolicy;
use crate::slots::{SlotAllocator, SlotKeeper, SlotQueues};
use crate::snapshots::SnapshotStore;
use crate::ticket::TicketWorker;

// Not in `config`, because the dialects in `model` know which keys they need.
impl ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.planner.listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), Error> {
        self.planner.check(self.tls.is_some())?;
        self.mcp.check()?;
        model::check_models(&self.model)
    }
}

/// Clients that follow from the settings alone.
pub(crate) struct PlannerClients {
    signer: GrantSigner,
    dial: ExecutorConnector,
    models: ModelClients,
    mcp: McpServers,
}

impl PlannerClients {
    /// Builds the clients, which connect on first use.
    ///
    /// # Errors
    /// A setting is invalid, or its file cannot be used.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            signer: GrantSigner::new(&config.planner.grant_key_id, &config.planner.grant_key)?,
            dial: ExecutorConnector::new(config.tls.as_ref())?,
            models: ModelClients::new(&config.model)?,
            mcp: McpServers::new(&config.mcp)?,
        })
    }
}

/// Worker on tickets, with the connections that the service needs besides.
pub(crate) struct PlannerParts {
    pub(crate) worker: TicketWorker,
    pub(crate) queue: Queue,
    pub(crate) leases: TicketLeases,
}

/// Builds the ticket worker with its connections; `None` on shutdown.
///
/// # Errors
/// A service stays unreachable, or a setting is invalid.
pub(crate) async fn build_worker(
    config: &Config,
    clients: PlannerClients,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<PlannerParts>> {
    let PlannerClients {
        signer,
        dial,
        models,
        mcp,
    } = clients;
    let connect = || async {
        let queue = Queue::connect(&config.nats, "planner").await?;
        queue.check_topology(queue::NatsRole::Planner).await?;
        Ok::<_, queue::Error>(queue)
    };
    let addresses = config.nats.addresses();
    let Some(queue) =
        service::connect_with_retries("nats", &addresses, shutdown, queue::Error::is_fatal, connect).await?
    else {
        return Ok(None);
    };
    let leases = TicketLeases::open(&config.redis)?;
    // Only logs an unreachable Redis at once: work continues without it.
    drop(leases.ping().await);
    let endpoint = config.telemetry.otlp_endpoint.as_deref();
    let forwarder = endpoint.map(SpanForwarder::new).transpose()?;
    let executors = ExecutorFleet::start(config.planner.clone(), signer, dial, forwarder, shutdown);
    let slots = Arc::new(SlotQueues::new(&queue));
    let keeper = SlotKeeper::new(queue.clone(), Arc::clone(&slots), Arc::clone(&executors));
    tokio::spawn(keeper.run(shutdown.clone()));
    tokio::spawn(PoolKeeper::new(&queue, Arc::clone(&executors)).run(shutdown.clone()));
    let budgets = SharedBudgets::new(lease::RedisBudgets::new(&leases), &config.planner.budget);
    let budgets = Arc::new(budgets);
    let (keeper, kept, until) = (Arc::clone(&budgets), queue.clone(), shutdown.clone());
    tokio::spawn(async move { keeper.keep(kept, until).await });
    let driver = RunDriver {
        slots: SlotAllocator::new(slots, Arc::clone(&executors)),
        retries: RetryPolicy {
            most: config.planner.max_retries,
            base_ms: config.planner.retry_base_ms,
            longest_ms: config.planner.retry_longest_ms,
            waits_for_model: config.planner.wait_for_model,
        },
        allowance: config
            .planner
            .allowance(model::conversation_limits(&config.model)?),
        embeddings: config
            .model
            .embeddings
            .as_deref()
            .map(EmbeddingClient::new)
            .transpose()?,
        budgets,
        images: ImageCache::default(),
        snapshots: SnapshotStore::new(queue.objects(), config.planner.snapshots),
        mcp: McpCaller::new(mcp),
        queue: queue.clone(),
        models,
        executors,
    };
    Ok(Some(PlannerParts {
        worker: TicketWorker::new(queue.clone(), leases.clone(), driver),
        queue,
        leases,
    }))
}
