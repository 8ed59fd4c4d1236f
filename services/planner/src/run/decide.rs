//! Decides the next action of a run, and the retries of a failed one.

use std::time::Duration;

use domain::{CallId, ChangeProof, Fact, RunId, StopReason, Timestamp, WaitCondition};

use super::jobs;
use super::machine::conversation::{self, ConversationView};
use super::machine::{
    PhaseDialog, PlannerRunState, RunAction, RunStep, hash_text, park_run, report_end, request_report,
};
use super::phases;

// Longest delay after the end of a budget's period.
const LONGEST_SPREAD_MS: u64 = 5 * 60_000;

/// Returns the next action of a run. A journal that ends at any entry gives the action that was interrupted
/// there.
pub(crate) fn decide_action(state: &PlannerRunState) -> RunAction {
    if state.lifecycle().finished().is_some() {
        return RunAction::Rest;
    }
    // Unsent reports first: the reporter must know what the next step may depend on.
    if let Some(report) = state.delivery().first_unsent() {
        return RunAction::SendReport {
            id: report.id.clone(),
            request: report.request.clone(),
            at: report.at,
        };
    }
    if let Some(reason) = state.delivery().closing() {
        return finish_run(reason.clone());
    }
    if state.lifecycle().retry().is_some() && state.lifecycle().stop_requester().is_none() {
        return wait_for_retry(state);
    }
    match first_open_step(state) {
        RunStep::Act(action) => *action,
        RunStep::Retry(reason) => RunAction::ScheduleRetry { reason },
        RunStep::Close(reason) => RunAction::Record(close_run(state, reason)),
        RunStep::Finish(reason) => finish_run(reason),
        // A change with failing checks that the base does not excuse is delivered, but not completed.
        RunStep::Over => match state.outputs().proof().and_then(ChangeProof::failure) {
            Some(reason) => RunAction::Record(close_run(state, reason)),
            None => finish_run(StopReason::Completed),
        },
    }
}

/// Returns the first step of the first phase that is not over.
fn first_open_step(state: &PlannerRunState) -> RunStep {
    if let Some(by) = state.lifecycle().stop_requester() {
        return RunStep::Close(StopReason::Stopped { by: by.to_owned() });
    }
    // A moved head comes before the phases, because it makes their results obsolete.
    if let Some(step) = phases::rework::end_after_moves(state) {
        return step;
    }
    let phases = jobs::job_spec(state).phases.iter();
    let mut steps = phases.map(|phase| (phase.next)(state));
    steps
        .find(|step| !matches!(step, RunStep::Over))
        .unwrap_or(RunStep::Over)
}

fn finish_run(reason: StopReason) -> RunAction {
    RunAction::Record(Fact::RunFinished { reason })
}

/// Returns the first fact of a run's end. A job that notifies its requester reports the reason first.
fn close_run(state: &PlannerRunState, reason: StopReason) -> Fact {
    if jobs::job_spec(state).is_awaited {
        report_end(state, reason)
    } else {
        Fact::RunFinished { reason }
    }
}

/// Notifies the requester of the retry once, then waits.
fn wait_for_retry(state: &PlannerRunState) -> RunAction {
    match state.lifecycle().retry() {
        Some(waiting) if jobs::job_spec(state).is_awaited && !waiting.is_reported => {
            request_report(state, waiting.report(state.job()), None)
        }
        _ => park_run(state, WaitCondition::Retry),
    }
}

/// Returns the content of the next model call; `None` without a conversation, or without its workspace.
pub(crate) fn next_conversation(state: &PlannerRunState) -> Option<ConversationView<'_>> {
    let dialog = jobs::phase_dialog(state, state.conversation().dialog()?.phase)?;
    conversation::view_conversation(state, dialog)
}

/// Returns the content of the model call for this summary; `None` if none is pending, or without its
/// workspace.
pub(crate) fn summary_conversation<'a>(
    state: &'a PlannerRunState,
    id: &CallId,
) -> Option<ConversationView<'a>> {
    let pending = |known: &'a PhaseDialog| Some((known, known.context.pending.as_ref()?));
    let mut all = state.conversation().dialogs().iter().filter_map(pending);
    let (known, pending) = all.find(|(_, pending)| pending.id == *id)?;
    conversation::view_for_summary(state, jobs::phase_dialog(state, known.phase)?, pending)
}

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
        let has_no_reply = matches!(reason, StopReason::ModelFailed { .. }) && !has_reply(state);
        if attempt > most || (has_no_reply && !self.waits_for_model) {
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
