//! How long a failed run waits before it tries again, and when it gives up.

use std::time::Duration;

use domain::{Fact, ReportId, ReportOutcome, ReportRequest, RunId, StopReason, Timestamp, WaitsFor};

use super::apply::{Applied, legal};
use super::state::{Goal, ModelTrouble, RunState};
use super::step::{Action, ask, close, closing, park};
use super::work::Work;

/// How often and how late a failed run is tried again.
#[derive(Clone, Debug)]
pub(crate) struct Retries {
    /// Retries in a row; after the last one the run ends and the ticket hears why. A repository's rules come first.
    pub(crate) most: u32,
    /// The first wait.
    pub(crate) base_ms: u64,
    /// The longest wait.
    pub(crate) longest_ms: u64,
}

impl Retries {
    /// What is written down after a failure: when it is tried again, or that the run ends.
    pub(crate) fn after(&self, state: &RunState, reason: StopReason, now: Timestamp) -> Fact {
        let own = state
            .request()
            .and_then(|request| request.rules.agent.max_retries);
        let most = own.unwrap_or(self.most);
        let attempt = state.retries + 1;
        if attempt > most {
            return closing(state, reason);
        }
        let due = now.plus(Duration::from_millis(self.delay_ms(&state.run, attempt)));
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

/// A wait between two tries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retry {
    pub(crate) attempt: u32,
    pub(crate) most: u32,
    pub(crate) due: Timestamp,
    pub(crate) reason: StopReason,
    /// The ticket has been told of it.
    pub(crate) told: bool,
}

/// FNV-1a: even enough for jitter, and the same in every release.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Waits for what a report brings; one that failed is tried again later.
pub(super) fn await_report(state: &RunState, id: &ReportId, waits_for: WaitsFor) -> Action {
    match state.report(id).and_then(|report| report.outcome.as_ref()) {
        Some(ReportOutcome::Failed { detail }) => fail(report_failed(detail)),
        Some(ReportOutcome::Done(_) | ReportOutcome::Refused { .. }) | None => park(state, waits_for),
    }
}

pub(super) fn report_failed(detail: &str) -> StopReason {
    StopReason::ReportFailed {
        detail: detail.to_owned(),
    }
}

/// A failure that may pass: again later, until the retries are used up.
pub(super) fn fail(reason: StopReason) -> Action {
    Action::ScheduleRetry { reason }
}

/// A turn without a reply: asked again later, if that may help.
pub(super) fn model_failed(state: &RunState, trouble: &ModelTrouble) -> Action {
    let reason = StopReason::ModelFailed {
        detail: trouble.detail.clone(),
    };
    if trouble.transient {
        fail(reason)
    } else {
        close(state, reason)
    }
}

/// Tells the ticket when it is tried again, then waits. Nobody waits for a triage, so nobody is told of one.
pub(super) fn wait_for_retry(state: &RunState, waiting: &Retry) -> Action {
    if waiting.told || matches!(state.goal, Goal::Triage(_)) {
        return park(state, WaitsFor::Retry);
    }
    let told = ReportRequest::RetryScheduled {
        job: state.job(),
        reason: waiting.reason.clone(),
        attempt: waiting.attempt,
        most: waiting.most,
        due: waiting.due,
    };
    ask(state, told, None)
}

impl RunState {
    pub(super) fn retry_scheduled(
        &mut self,
        (attempt, most): (u32, u32),
        due: Timestamp,
        reason: &StopReason,
    ) -> Applied {
        legal(self.retry.is_none(), "a retry is scheduled already")?;
        legal(attempt == self.retries + 1, "its count is wrong")?;
        self.retries = attempt;
        self.retry = Some(Retry {
            attempt,
            most,
            due,
            reason: reason.clone(),
            told: false,
        });
        Ok(())
    }

    /// Puts back what failed, so that it is asked for again under a new id.
    pub(super) fn retried(&mut self, by: Option<&str>) -> Applied {
        legal(self.retry.take().is_some(), "no retry is scheduled")?;
        if by.is_some() {
            self.retries = 0;
        }
        if matches!(self.goal, Goal::Tell(..)) {
            self.reports.clear();
            self.unsent.clear();
        }
        self.works.values_mut().for_each(Work::retried);
        if self.turns.last().is_some_and(|turn| turn.failed.is_some()) {
            self.turns.pop();
            for heard in &mut self.news {
                heard.after_turns = heard.after_turns.min(self.turns.len());
            }
        }
        let failed: Vec<ReportId> = self
            .reports
            .iter()
            .filter(|report| matches!(report.outcome, Some(ReportOutcome::Failed { .. })))
            .map(|report| report.id.clone())
            .collect();
        if let Some(call) = self.open_call_mut() {
            let is_over = |id: &ReportId| failed.contains(id);
            call.report = call.report.take().filter(|id| !is_over(id));
            call.gate = call.gate.take().filter(|id| !is_over(id));
        }
        Ok(())
    }
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
