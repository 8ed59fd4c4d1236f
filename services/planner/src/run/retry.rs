//! How long a failed run waits before it tries again, and when it gives up.

use domain::{ReportId, ReportOutcome, ReportRequest, RunId, StopReason, Timestamp};

use super::apply::{Applied, legal};
use super::state::{Goal, ModelTrouble, RunState, Workspace};
use super::step::{Action, ask, close, park};

/// Retries in a row; after the last one the run ends and the ticket hears why.
pub(crate) const MOST: u32 = 5;
/// The longest wait.
const LONGEST_MS: u64 = 15 * 60 * 1000;

/// A wait between two tries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retry {
    pub(crate) attempt: u32,
    pub(crate) due: Timestamp,
    pub(crate) reason: StopReason,
    /// The ticket has been told of it.
    pub(crate) told: bool,
}

/// The wait before a retry (from 1): doubled each time, ±20 %, 15 minutes at most. The jitter is drawn from the run and
/// the retry, so that it is the same whoever asks.
pub(crate) fn delay_ms(base_ms: u64, run: &RunId, attempt: u32) -> u64 {
    let doubled = base_ms.saturating_mul(2_u64.saturating_pow(attempt.saturating_sub(1)));
    let per_mille = 800 + hash(&format!("{run}:{attempt}")) % 401;
    doubled
        .min(LONGEST_MS)
        .saturating_mul(per_mille)
        .div_euclid(1000)
        .min(LONGEST_MS)
}

/// FNV-1a: even enough for jitter, and the same in every release.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Waits for what a report brings; one that failed is tried again later.
pub(super) fn await_report(state: &RunState, id: &ReportId, waits_for: &str) -> Action {
    match state.report(id).and_then(|report| report.outcome.as_ref()) {
        Some(ReportOutcome::Failed { detail }) => fail(state, report_failed(detail)),
        Some(ReportOutcome::Done(_) | ReportOutcome::Refused { .. }) | None => park(state, waits_for),
    }
}

pub(super) fn report_failed(detail: &str) -> StopReason {
    StopReason::ReportFailed {
        detail: detail.to_owned(),
    }
}

/// A failure that may pass: again later, until the retries are used up.
pub(super) fn fail(state: &RunState, reason: StopReason) -> Action {
    if state.retries >= MOST {
        return close(state, reason);
    }
    Action::ScheduleRetry {
        attempt: state.retries + 1,
        reason,
    }
}

/// A turn without a reply: asked again later, if that may help.
pub(super) fn model_failed(state: &RunState, trouble: &ModelTrouble) -> Action {
    let reason = StopReason::ModelFailed {
        detail: trouble.detail.clone(),
    };
    if trouble.transient {
        fail(state, reason)
    } else {
        close(state, reason)
    }
}

/// Tells the ticket when it is tried again, then waits. Nobody waits for a triage, so nobody is told of one.
pub(super) fn wait_for_retry(state: &RunState, waiting: &Retry) -> Action {
    if waiting.told || matches!(state.goal, Goal::Triage(_)) {
        return park(state, "retry");
    }
    let told = ReportRequest::RetryScheduled {
        job: state.job(),
        reason: waiting.reason.clone(),
        attempt: waiting.attempt,
        most: MOST,
        due: waiting.due,
    };
    ask(state, told, None)
}

impl RunState {
    pub(super) fn retry_scheduled(&mut self, attempt: u32, due: Timestamp, reason: &StopReason) -> Applied {
        legal(self.retry.is_none(), "a retry is scheduled already")?;
        legal(attempt == self.retries + 1, "its count is wrong")?;
        self.retries = attempt;
        self.retry = Some(Retry {
            attempt,
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
        if let Workspace::Failed { lost, .. } = &mut self.workspace {
            self.workspace = lost.take().map_or(Workspace::Absent, Workspace::Open);
        }
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
                let delay = delay_ms(60_000, &run(number), attempt);
                assert!(
                    delay >= ideal * 8 / 10 && delay <= ideal * 12 / 10,
                    "{attempt}: {delay}"
                );
                assert!(delay <= LONGEST_MS);
                assert_eq!(delay, delay_ms(60_000, &run(number), attempt));
            }
        }
    }

    #[test]
    fn runs_that_failed_together_do_not_come_back_together() {
        let mut delays: Vec<u64> = (1..=50).map(|number| delay_ms(60_000, &run(number), 1)).collect();
        delays.sort_unstable();
        delays.dedup();
        assert!(delays.len() > 40, "{delays:?}");
    }
}
