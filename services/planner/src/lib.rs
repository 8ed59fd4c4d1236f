//! Planner service, the only one that calls the model.
//!
//! It takes a ticket's wake-up token, folds new triggers into the ticket's row and drives the ticket's
//! runs: decide, act, record, apply.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod availability;
mod budgets;
mod config;
mod driver;
mod embeddings;
mod executors;
mod live_output;
mod mcp_calls;
mod model;
mod pools;
mod prompts;
mod run;
mod slots;
mod snapshots;
mod startup;
mod telemetry;
#[cfg(test)]
mod tests;
mod ticket;
mod ticket_slots;
mod transcript;

use std::{sync::Arc, time::Duration};

use bootstrap::{ServiceApp, health::ServiceHealth, service};
use domain::Trigger;
use queue::{Queue, TokenSource};
use tokio::net::TcpListener;
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

pub use config::{
    AmountSettings, BudgetSettings, CeilingSettings, Config, EmbeddingSettings, ModelPrice, ModelSettings,
    PeriodSettings, PlannerSettings, RoleSettings, RoleTable, SnapshotSettings, ThinkingMode,
};
pub use executors::inspect_pools;
pub use mcp_calls::{McpInspection, inspect_mcp_servers};
pub use model::{
    ModelDestination, NO_BEDROCK, TrialFailure, TrialResult, find_default_address, list_dialects,
    locate_configured_models, try_configured_model,
};
use startup::{PlannerClients, PlannerParts};
use ticket::TicketWorker;
use ticket_slots::TicketSlots;

// Longest time that a shutdown waits for active tickets.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);

/// Planner with the clients that its settings describe, ready to take tickets.
pub struct PlannerApp {
    config: Config,
    clients: PlannerClients,
}

impl ServiceApp for PlannerApp {
    type Config = Config;

    async fn build(config: Config) -> anyhow::Result<Self> {
        let clients = PlannerClients::new(&config)?;
        Ok(Self { config, clients })
    }

    /// Returns active tickets at shutdown, so that another planner continues them. Fails when NATS stays
    /// unreachable for a minute at start, or a stream is not as the topology requires.
    async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { config, clients } = self;
        let health = ServiceHealth::new();
        let limits = bootstrap::http::ListenerLimits::default();
        let health_checks = bootstrap::http::serve_http(
            listener,
            health.router().merge(pools::scale_router()),
            limits,
            shutdown.clone(),
        );
        let http = tokio::spawn(health_checks);
        let worked = Box::pin(work_until_shutdown(&config, clients, &health, &shutdown)).await;
        // Not ready first: readiness must not report a planner that takes no tickets.
        health.set_ready(false);
        shutdown.cancel();
        http.await?;
        worked
    }
}

async fn work_until_shutdown(
    config: &Config,
    clients: PlannerClients,
    health: &ServiceHealth,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let Some(parts) = startup::build_worker(config, clients, shutdown).await? else {
        return Ok(());
    };
    let PlannerParts {
        worker,
        queue,
        leases,
    } = parts;
    let worker = Arc::new(worker);
    health.set_ready(true);
    tracing::info!(slots = config.planner.slots, "planner is ready");
    let watched = availability::watch_readiness(queue.clone(), leases, health.clone(), shutdown.clone());
    let _watching = AbortOnDropHandle::new(tokio::spawn(watched));
    while !shutdown.is_cancelled() {
        // Each turn of the loop is one shift: it ends at shutdown or when an admin stops all planners.
        availability::wait_until_off(&queue, shutdown).await;
        let shift = shutdown.child_token();
        let stop = async {
            availability::wait_until_on(&queue, &shift).await;
            if !shift.is_cancelled() {
                tracing::warn!("an admin stopped every planner; tickets in hand are given back");
                shift.cancel();
            }
        };
        let take = |tokens| take_tickets(config, &worker, tokens, &shift);
        let taking = keep_taking(&queue, &shift, take);
        let ((), worked) = tokio::join!(stop, Box::pin(taking));
        worked?;
    }
    health.set_ready(false);
    // After the last ticket, whose calls may still have spans at executors.
    worker.finish_spans().await;
    Ok(())
}

/// Takes tickets until the end of the shift. An error ends the shift.
///
/// A server that is slow for a moment must not end the planner, nor the other services of one process.
async fn keep_taking<F: Future<Output = ()>>(
    queue: &Queue,
    shift: &CancellationToken,
    take: impl Fn(TokenSource<Trigger>) -> F,
) -> anyhow::Result<()> {
    let kept = service::keep_running("tickets", shift, queue::Error::is_fatal, async || {
        take(queue.triggers().tokens(shift.clone()).await?).await;
        Ok(())
    });
    let kept = kept.await;
    shift.cancel();
    kept
}

/// Works on tickets until the end of the shift, then returns the active ones.
async fn take_tickets(
    config: &Config,
    worker: &Arc<TicketWorker>,
    mut tokens: TokenSource<Trigger>,
    shift: &CancellationToken,
) {
    let slots = Arc::new(TicketSlots::new(config.planner.slots));
    let tickets = TaskTracker::new();
    loop {
        // The slot comes first: a token in hand without a slot would expire.
        let slot = tokio::select! {
            slot = slots.take() => slot,
            () = shift.cancelled() => break,
        };
        let Ok(slot) = slot else { break };
        let Some(token) = tokens.next().await else { break };
        let (worker, slots, shift) = (worker.clone(), slots.clone(), shift.clone());
        tickets.spawn(async move {
            worker.handle(token, &slots, shift).await;
            drop(slot);
        });
    }
    tickets.close();
    if tokio::time::timeout(DRAIN_LIMIT, tickets.wait()).await.is_err() {
        tracing::warn!(
            tickets = tickets.len(),
            "tickets in hand were not given back in time"
        );
    }
}
