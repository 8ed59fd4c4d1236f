//! Switch of the admin that stops every planner.

use std::time::Duration;

use domain::{StopAll, cause::chain};
use queue::{Bucket, Queue};
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_secs(2);

/// Waits until the switch is on, or until shutdown. A queue that does not respond does not change the
/// switch.
pub(crate) async fn switched_on(queue: &Queue, shutdown: &CancellationToken) {
    wait(queue, shutdown, true).await;
}

/// Waits until the switch is off, or until shutdown.
pub(crate) async fn switched_off(queue: &Queue, shutdown: &CancellationToken) {
    wait(queue, shutdown, false).await;
}

async fn wait(queue: &Queue, shutdown: &CancellationToken, wanted: bool) {
    let table = queue.table::<StopAll>(Bucket::Control);
    loop {
        match table.get(StopAll::KEY).await {
            Ok(record) if record.is_some() == wanted => return,
            Ok(_) => {}
            Err(error) => tracing::warn!(error = %chain(&error), "the stop-all switch could not be read"),
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
