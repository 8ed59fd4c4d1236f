//! Connects to the services that the planner needs, with retries for a minute.

use std::sync::Arc;

use bootstrap::{service, span_forwarder::SpanForwarder};
use grant::Signer;
use lease::Leases;
use queue::Queue;
use tokio_util::sync::CancellationToken;

use crate::budgets::Budgets;
use crate::config::Config;
use crate::driver::Driver;
use crate::embeddings::Embeddings;
use crate::executors::{Dial, Executors};
use crate::model::{self, Models};
use crate::pools::PoolKeeper;
use crate::run::Retries;
use crate::slots::{SlotKeeper, Slots};
use crate::snapshots::SnapshotStore;
use crate::ticket::TicketDesk;

/// Builds the ticket worker with its connections; `None` on shutdown.
///
/// # Errors
/// A service stays unreachable, or a setting is invalid.
pub(crate) async fn desk(
    config: &Config,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<(TicketDesk, Queue, Leases)>> {
    let signer = Signer::new(&config.planner.grant_key_id, &config.planner.grant_key)?;
    let dial = Dial::new(config.tls.as_ref())?;
    let models = Models::new(&config.model)?;
    let connect = || async {
        let queue = Queue::connect(&config.nats, "planner").await?;
        queue.check_topology(queue::Role::Planner).await?;
        Ok::<_, queue::Error>(queue)
    };
    // A stream that differs from the topology does not heal by waiting.
    let is_fatal = |error: &queue::Error| !error.is_passing();
    let addresses = config.nats.addresses();
    let Some(queue) = service::connect("nats", &addresses, shutdown, is_fatal, connect).await? else {
        return Ok(None);
    };
    let leases = Leases::open(&config.redis)?;
    // Only logs an unreachable Redis at once: work continues without it.
    drop(leases.ping().await);
    let endpoint = config.telemetry.otlp_endpoint.as_deref();
    let forwarder = endpoint.map(SpanForwarder::new).transpose()?;
    let executors = Executors::start(config.planner.clone(), signer, dial, forwarder, shutdown);
    tokio::spawn(SlotKeeper::new(queue.clone(), Arc::clone(&executors)).run(shutdown.clone()));
    tokio::spawn(PoolKeeper::new(&queue, Arc::clone(&executors)).run(shutdown.clone()));
    let budgets = Budgets::new(lease::Budgets::new(&leases), &config.planner.budget);
    let budgets = Arc::new(budgets);
    let (keeper, kept, until) = (Arc::clone(&budgets), queue.clone(), shutdown.clone());
    tokio::spawn(async move { keeper.keep(kept, until).await });
    let driver = Driver {
        slots: Slots::new(queue.clone(), Arc::clone(&executors)),
        retries: Retries {
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
            .map(Embeddings::new)
            .transpose()?,
        budgets,
        snapshots: SnapshotStore::new(queue.objects(), config.planner.snapshots),
        queue: queue.clone(),
        models,
        executors,
    };
    let desk = TicketDesk::new(queue.clone(), leases.clone(), driver);
    Ok(Some((desk, queue, leases)))
}
