//! Rate-limited logging for events that untrusted peers can trigger.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Limiter that lets one log line through per interval and counts the others.
#[derive(Debug)]
pub struct ThrottledLog {
    every: Duration,
    state: Mutex<ThrottleState>,
}

#[derive(Debug, Default)]
struct ThrottleState {
    last: Option<Instant>,
    suppressed: u64,
}

impl ThrottledLog {
    /// Creates a limiter with one line per interval.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            state: Mutex::default(),
        }
    }

    /// Returns `Some` when a line is due, with the number of lines that were suppressed before it.
    pub fn pass(&self) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.last.is_some_and(|last| now < last + self.every) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_per_interval_counts_suppressed_ones() {
        let log = ThrottledLog::new(Duration::from_secs(10));
        assert_eq!((log.pass(), log.pass(), log.pass()), (Some(0), None, None));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!((log.pass(), log.pass()), (Some(2), None));
    }
}
