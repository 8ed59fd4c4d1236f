//! Observation of a round: repaired wake-ups, and webhooks that are missing in their stream.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cluster_test::{
    names::TicketRound,
    nats_monitor::{StreamReport, report_streams},
    wake_ups::WakeUpWatch,
};

/// Time limit for the servers to report the last webhook.
const REPORTED: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_secs(1);

/// Observation from the start of a round to its end.
pub(crate) struct RoundObservation {
    before: StreamReport,
    wake_ups: WakeUpWatch,
}

impl RoundObservation {
    /// Starts the observation.
    ///
    /// # Errors
    /// When no NATS server answers.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Ok(Self {
            before: report_streams().await?,
            wake_ups: WakeUpWatch::start(),
        })
    }

    /// Adds lost webhooks to the round and returns the tickets whose wake-up was repaired.
    ///
    /// # Errors
    /// When no NATS server answers.
    pub(crate) async fn end(self, round: &mut TicketRound) -> anyhow::Result<Vec<String>> {
        let accepted = round.webhooks.accepted + round.own_webhooks;
        let start = Instant::now();
        let missing = loop {
            let stored = report_streams().await?.deliveries;
            let missing = count_missing(accepted, self.before.deliveries, stored);
            if missing == 0 || start.elapsed() > REPORTED {
                break missing;
            }
            sleep(TICK).await;
        };
        if missing > 0 {
            let problem = format!(
                "webhooks: lost: {missing} of {accepted} that were answered with 202 were not stored"
            );
            round.lost.push(problem);
        }
        Ok(self.wake_ups.end())
    }
}

/// Counts accepted webhooks that the stream lacks. The stream may have more: one that was stored while its
/// sender gave up.
const fn count_missing(accepted: u64, before: u64, after: u64) -> u64 {
    accepted.saturating_sub(after.saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_webhooks_must_all_be_stored() {
        assert_eq!(count_missing(10, 5, 15), 0);
        assert_eq!(count_missing(10, 5, 14), 1);
        assert_eq!(count_missing(10, 5, 17), 0, "a sender that gave up");
        assert_eq!(count_missing(10, 5, 3), 10, "a stream that was made again");
    }
}
