//! Availability of the planner: its streams must respond, and no admin may have stopped every planner.
//!
//! A connection to NATS alone is not enough for readiness. Redis may be down; `/readyz` notes that.

use std::time::Duration;

use bootstrap::{health::ServiceHealth, service};
use domain::{StopAll, cause::format_error_chain};
use lease::TicketLeases;
use queue::{KeyValueBucket, NatsRole, Queue};
use tokio_util::sync::CancellationToken;

// Pause between two reads of the switch.
const SWITCH_EVERY: Duration = Duration::from_secs(2);

/// Updates the readiness until shutdown.
pub(crate) async fn watch_readiness(
    queue: Queue,
    leases: TicketLeases,
    health: ServiceHealth,
    shutdown: CancellationToken,
) {
    service::track_readiness("nats", &health, &shutdown, async || {
        let (nats, redis) = tokio::join!(queue.probe(NatsRole::Planner), leases.ping());
        health.set_note(redis.err().map(|error| {
            format!(
                "{}; the work continues without leases",
                format_error_chain(&error)
            )
        }));
        nats.is_ok()
    })
    .await;
}

/// Waits until the switch is on, or until shutdown. A queue that does not respond does not change the
/// switch.
pub(crate) async fn wait_until_on(queue: &Queue, shutdown: &CancellationToken) {
    wait_for_switch(queue, shutdown, true).await;
}

/// Waits until the switch is off, or until shutdown.
pub(crate) async fn wait_until_off(queue: &Queue, shutdown: &CancellationToken) {
    wait_for_switch(queue, shutdown, false).await;
}

async fn wait_for_switch(queue: &Queue, shutdown: &CancellationToken, wanted: bool) {
    let table = queue.table::<StopAll>(KeyValueBucket::Control);
    loop {
        match table.get(StopAll::KEY).await {
            Ok(record) if record.is_some() == wanted => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "the stop-all switch could not be read")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(SWITCH_EVERY) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
