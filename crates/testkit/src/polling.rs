//! Waiting with a limit and a clear error.
//!
//! A limit counts the time in which this process runs: a machine that stands still for some seconds does not end a
//! wait.

use std::time::Duration;

use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(25);
/// Longest time that one poll counts, far above its duration.
const LONGEST_COUNTED: Duration = Duration::from_secs(1);

/// Calls `read` every 25 ms and returns its first value.
///
/// # Errors
/// When `deadline` passes without a value. The error names `what`.
pub async fn poll_until<T>(
    what: &str,
    deadline: Duration,
    mut read: impl AsyncFnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let mut waited = Duration::ZERO;
    loop {
        let began = Instant::now();
        if let Some(found) = read().await {
            return Ok(found);
        }
        if waited >= deadline {
            anyhow::bail!("{what}: not seen within {} ms", deadline.as_millis());
        }
        sleep(POLL).await;
        waited += began.elapsed().min(LONGEST_COUNTED);
    }
}

/// Waits for a result that must arrive within a limit; `None` when the limit is reached.
pub async fn bound_running_time<T>(limit: Duration, coming: impl Future<Output = T>) -> Option<T> {
    let over = async {
        for _ in 0..limit.as_millis().div_ceil(POLL.as_millis()) {
            sleep(POLL).await;
        }
    };
    tokio::select! {
        biased;
        found = coming => Some(found),
        () = over => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(2);
    /// Time for which the whole machine stands still.
    const STALL: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn stalls_leave_time_for_third_poll() {
        let mut polls = 0;
        let found = poll_until("the third poll", LIMIT, async || {
            polls += 1;
            advance(STALL).await;
            (polls == 3).then_some(polls)
        });
        assert_eq!(found.await.unwrap(), 3);
        let missing = poll_until("nothing", LIMIT, async || None::<()>).await;
        assert_eq!(
            missing.unwrap_err().to_string(),
            "nothing: not seen within 2000 ms"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn stall_uses_no_running_time() {
        let stalled = async {
            advance(STALL).await;
            sleep(LIMIT / 2).await;
        };
        assert_eq!(bound_running_time(LIMIT, stalled).await, Some(()));
        let never = std::future::pending::<()>();
        assert_eq!(bound_running_time(LIMIT, never).await, None);
    }
}
