//! Switch of the admin that stops every planner.

use std::time::Duration;

use domain::{StopAll, cause::format_error_chain};
use queue::{KeyValueBucket, Queue};
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_secs(2);

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
            () = tokio::time::sleep(LOOK) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
