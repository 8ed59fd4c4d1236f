//! Polling with a deadline and a clear error.

use std::time::Duration;

use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(25);

/// Calls `read` every 25 ms and returns its first value.
///
/// # Errors
/// When `deadline` passes without a value. The error names `what`.
pub async fn poll_until<T>(
    what: &str,
    deadline: Duration,
    mut read: impl AsyncFnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = read().await {
            return Ok(found);
        }
        if Instant::now() >= end {
            anyhow::bail!("{what}: not seen within {} ms", deadline.as_millis());
        }
        sleep(POLL).await;
    }
}
