//! Readiness of the planner: its streams must respond, a connection alone is not enough.
//!
//! Redis may be down; `/readyz` notes that.

use std::time::Duration;

use bootstrap::health::ServiceHealth;
use domain::cause::format_error_chain;
use lease::TicketLeases;
use queue::{NatsRole, Queue};
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_secs(5);

/// Updates the readiness until shutdown.
pub(crate) async fn watch_readiness(
    queue: Queue,
    leases: TicketLeases,
    health: ServiceHealth,
    shutdown: CancellationToken,
) {
    let rounds = async {
        loop {
            tokio::time::sleep(INTERVAL).await;
            probe_services(&queue, &leases, &health).await;
        }
    };
    shutdown.run_until_cancelled(rounds).await;
}

async fn probe_services(queue: &Queue, leases: &TicketLeases, health: &ServiceHealth) {
    let (nats, redis) = tokio::join!(queue.probe(NatsRole::Planner), leases.ping());
    health.set_note(
        redis
            .err()
            .map(|error| format!("{}; work goes on without leases", format_error_chain(&error))),
    );
    if nats.is_ok() != health.is_ready() {
        tracing::warn!(
            ready = nats.is_ok(),
            "nats answers or is silent: readiness changed"
        );
        health.set_ready(nats.is_ok());
    }
}
