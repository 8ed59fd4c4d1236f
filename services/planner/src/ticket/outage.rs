//! Retries operations during a NATS outage. The session's state may have cost minutes and money.

use std::time::Duration;

use domain::cause::format_error_chain;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::driver::TicketError;

// docs/reliability.md promises that the outcome of a step survives an outage of up to a minute.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

/// Time limit for the retries of one operation.
pub(super) struct OutagePatience {
    what: &'static str,
    since: Instant,
}

impl OutagePatience {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            since: Instant::now(),
        }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The given error if it is not an outage, if the outage lasts too long, and on shutdown.
    pub(super) async fn pause(
        &mut self,
        trouble: TicketError,
        shutdown: &CancellationToken,
    ) -> Result<(), TicketError> {
        if !trouble.is_outage() || self.since.elapsed() > LIMIT {
            return Err(trouble);
        }
        tracing::warn!(what = self.what, error = %format_error_chain(&trouble), "nats does not answer, trying again");
        match shutdown.run_until_cancelled(sleep(PAUSE)).await {
            Some(()) => Ok(()),
            None => Err(trouble),
        }
    }
}
