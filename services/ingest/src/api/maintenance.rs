//! Maintenance orders for the reporter. Ingest faces untrusted peers, so its NATS account deletes nothing and writes no
//! report.

use std::time::Duration;

use domain::{MaintenanceOrder, MaintenanceOutcome, MaintenanceTask};
use queue::Queue;
use tokio::time::{Instant, sleep};

use super::ApiProblem;

// Time that a caller waits for the reporter.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Orders a task and waits for its outcome.
pub(super) async fn order_maintenance(
    queue: &Queue,
    by: &str,
    task: MaintenanceTask,
) -> Result<MaintenanceOutcome, ApiProblem> {
    let order = MaintenanceOrder {
        id: uuid::Uuid::new_v4().to_string(),
        at: bootstrap::read_wall_clock(),
        by: by.to_owned(),
        task,
    };
    let orders = queue.maintenance_orders();
    orders.ask(&order).await?;
    tracing::warn!(order = order.id, by, task = ?order.task, "maintenance asked for");
    // The reporter answers with a record, so its outcome is polled.
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if let Some(outcome) = orders.outcome(&order.id).await? {
            return Ok(outcome);
        }
        sleep(LOOK_EVERY).await;
    }
    Err(ApiProblem::Unavailable(format!(
        "the reporter has not carried it out within {} s; it does so when it runs again, within seven days",
        PATIENCE.as_secs()
    )))
}

/// Response to the caller: nothing after success.
pub(super) fn check_maintenance_outcome(
    outcome: MaintenanceOutcome,
    missing: impl FnOnce() -> ApiProblem,
) -> Result<(), ApiProblem> {
    match outcome {
        MaintenanceOutcome::Done => Ok(()),
        MaintenanceOutcome::Missing => Err(missing()),
        MaintenanceOutcome::Refused { reason } => Err(ApiProblem::Conflict(reason)),
    }
}
