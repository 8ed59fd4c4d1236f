//! Retries of a failed run: their delay and their limit.

use std::time::Duration;

use domain::{Fact, RunId, StopReason, Timestamp};

use super::close_run;
use crate::run::machine::{PlannerRunState, hash_text};

// Longest delay after the end of a budget's period.
const LONGEST_SPREAD_MS: u64 = 5 * 60_000;

/// Limits of a run's retries.
#[derive(Clone, Debug)]
pub(crate) struct RetryPolicy {
    /// Retries in a row. After the last one the run ends and reports the reason. A repository's rules take
    /// precedence.
    pub(crate) most: u32,
    /// First delay in milliseconds.
    pub(crate) base_ms: u64,
    /// Longest delay in milliseconds.
    pub(crate) longest_ms: u64,
    /// True if a run waits for a model that has never replied to it.
    pub(crate) waits_for_model: bool,
}

impl RetryPolicy {
    /// Returns the fact after a failure: a scheduled retry, or the end of the run.
    pub(crate) fn after(&self, state: &PlannerRunState, reason: StopReason, now: Timestamp) -> Fact {
        let own = state
            .request()
            .and_then(|request| request.rules.agent.max_retries);
        let most = own.unwrap_or(self.most);
        let attempt = state.lifecycle().retries() + 1;
        let is_unheard = matches!(reason, StopReason::ModelFailed { .. }) && !has_reply(state);
        if attempt > most || (is_unheard && !self.waits_for_model) {
            return close_run(state, reason);
        }
        let due = match reason.resets() {
            Some(resets) => resets
                .max(now)
                .plus(Duration::from_millis(resume_spread_ms(&state.run))),
            None => now.plus(Duration::from_millis(self.delay_ms(&state.run, attempt))),
        };
        Fact::RetryScheduled {
            attempt,
            most,
            due,
            reason,
        }
    }

    /// Returns the delay of a retry (from 1): doubled each time, ±20 %, limited. The jitter is derived from
    /// run and retry, so that every planner computes the same value.
    fn delay_ms(&self, run: &RunId, attempt: u32) -> u64 {
        let doubled = self
            .base_ms
            .saturating_mul(2_u64.saturating_pow(attempt.saturating_sub(1)));
        let per_mille = 800 + hash_text(&format!("{run}:{attempt}")) % 401;
        doubled
            .min(self.longest_ms)
            .saturating_mul(per_mille)
            .div_euclid(1000)
            // The jitter may exceed the limit, so the limit applies a second time.
            .min(self.longest_ms)
    }
}

/// Returns true if a model has replied in any conversation.
fn has_reply(state: &PlannerRunState) -> bool {
    let dialogs = state.conversation().dialogs().iter();
    let mut turns = dialogs.flat_map(|dialog| &dialog.turns);
    turns.any(|turn| turn.reply.is_some())
}

/// Returns the delay after the end of a budget's period, so that waiting runs do not resume together.
fn resume_spread_ms(run: &RunId) -> u64 {
    1 + hash_text(&run.to_string()) % LONGEST_SPREAD_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_run_id(number: u64) -> RunId {
        RunId::new("jira:ENG-12".parse().unwrap(), number)
    }

    const RETRIES: RetryPolicy = RetryPolicy {
        most: 5,
        base_ms: 60_000,
        longest_ms: 900_000,
        waits_for_model: true,
    };

    #[test]
    fn retry_delay_doubles_with_jitter_below_maximum() {
        for number in 1..200 {
            for (attempt, ideal) in [
                (1, 60_000),
                (2, 120_000),
                (3, 240_000),
                (4, 480_000),
                (5, 900_000),
            ] {
                let delay = RETRIES.delay_ms(&build_run_id(number), attempt);
                assert!(
                    delay >= ideal * 8 / 10 && delay <= ideal * 12 / 10,
                    "{attempt}: {delay}"
                );
                assert!(delay <= RETRIES.longest_ms);
                assert_eq!(delay, RETRIES.delay_ms(&build_run_id(number), attempt));
            }
        }
    }

    #[test]
    fn runs_failed_together_retry_apart() {
        let mut delays: Vec<u64> = (1..=50)
            .map(|number| RETRIES.delay_ms(&build_run_id(number), 1))
            .collect();
        delays.sort_unstable();
        delays.dedup();
        assert!(delays.len() > 40, "{delays:?}");
    }
}
