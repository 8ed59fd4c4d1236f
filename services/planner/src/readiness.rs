//! Readiness of the planner: its streams must respond, a connection alone is not enough.
//!
//! Redis may be down; `/readyz` notes that.

use std::time::Duration;

use bootstrap::health::Health;
use domain::cause::chain;
use lease::Leases;
use queue::{Queue, Role};
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_secs(5);

/// Updates the readiness until shutdown.
pub(crate) async fn watch(queue: Queue, leases: Leases, health: Health, shutdown: CancellationToken) {
    let rounds = async {
        loop {
            tokio::time::sleep(INTERVAL).await;
            look(&queue, &leases, &health).await;
        }
    };
    shutdown.run_until_cancelled(rounds).await;
}

async fn look(queue: &Queue, leases: &Leases, health: &Health) {
    let (nats, redis) = tokio::join!(queue.probe(Role::Planner), leases.ping());
    health.set_note(
        redis
            .err()
            .map(|error| format!("{}; work goes on without leases", chain(&error))),
    );
    if nats.is_ok() != health.is_ready() {
        tracing::warn!(
            ready = nats.is_ok(),
            "nats answers or is silent: readiness changed"
        );
        health.set_ready(nats.is_ok());
    }
}
