//! How long a failed run waits before it tries again, and when it gives up.

use std::time::Duration;

use domain::{Fact, RunId, StopReason, Timestamp};

use super::closing;
use crate::run::machine::{RunState, hash};

/// The latest that a run goes on after a budget's period is over.
const LONGEST_SPREAD_MS: u64 = 5 * 60_000;

/// How often and how late a failed run is tried again.
#[derive(Clone, Debug)]
pub(crate) struct Retries {
    /// Retries in a row; after the last one the run ends and the ticket hears why. A repository's rules come first.
    pub(crate) most: u32,
    /// The first wait.
    pub(crate) base_ms: u64,
    /// The longest wait.
    pub(crate) longest_ms: u64,
    /// True when a run waits for a model that has not answered it yet.
    pub(crate) waits_for_model: bool,
}

impl Retries {
    /// What is written down after a failure: when it is tried again, or that the run ends.
    pub(crate) fn after(&self, state: &RunState, reason: StopReason, now: Timestamp) -> Fact {
        let own = state
            .request()
            .and_then(|request| request.rules.agent.max_retries);
        let most = own.unwrap_or(self.most);
        let attempt = state.retries + 1;
        let is_unheard = matches!(reason, StopReason::ModelFailed { .. }) && !state.has_reply();
        if attempt > most || (is_unheard && !self.waits_for_model) {
            return closing(state, reason);
        }
        let due = match reason.resets() {
            Some(resets) => resets.max(now).plus(Duration::from_millis(spread_ms(&state.run))),
            None => now.plus(Duration::from_millis(self.delay_ms(&state.run, attempt))),
        };
        Fact::RetryScheduled {
            attempt,
            most,
            due,
            reason,
        }
    }

    /// The wait before a retry (from 1): doubled each time, ±20 %, the longest wait at most. The jitter is drawn from the
    /// run and the retry, so that it is the same whoever asks.
    fn delay_ms(&self, run: &RunId, attempt: u32) -> u64 {
        let doubled = self
            .base_ms
            .saturating_mul(2_u64.saturating_pow(attempt.saturating_sub(1)));
        let per_mille = 800 + hash(&format!("{run}:{attempt}")) % 401;
        doubled
            .min(self.longest_ms)
            .saturating_mul(per_mille)
            .div_euclid(1000)
            .min(self.longest_ms)
    }
}

/// How long after a budget's period a run goes on: those that wait for the same one do not come back together.
fn spread_ms(run: &RunId) -> u64 {
    1 + hash(&run.to_string()) % LONGEST_SPREAD_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u64) -> RunId {
        RunId::new("jira:ENG-12".parse().unwrap(), number)
    }

    const RETRIES: Retries = Retries {
        most: 5,
        base_ms: 60_000,
        longest_ms: 900_000,
        waits_for_model: true,
    };

    #[test]
    fn waits_double_within_a_fifth_and_stay_below_fifteen_minutes() {
        for number in 1..200 {
            for (attempt, ideal) in [
                (1, 60_000),
                (2, 120_000),
                (3, 240_000),
                (4, 480_000),
                (5, 900_000),
            ] {
                let delay = RETRIES.delay_ms(&run(number), attempt);
                assert!(
                    delay >= ideal * 8 / 10 && delay <= ideal * 12 / 10,
                    "{attempt}: {delay}"
                );
                assert!(delay <= RETRIES.longest_ms);
                assert_eq!(delay, RETRIES.delay_ms(&run(number), attempt));
            }
        }
    }

    #[test]
    fn runs_that_failed_together_do_not_come_back_together() {
        let mut delays: Vec<u64> = (1..=50).map(|number| RETRIES.delay_ms(&run(number), 1)).collect();
        delays.sort_unstable();
        delays.dedup();
        assert!(delays.len() > 40, "{delays:?}");
    }
}
