//! Decides the next action of a run.

mod retries;

use domain::{CallId, Fact, Proof, StopReason, WaitsFor};

use super::jobs;
use super::machine::conversation::{self, Conversation};
use super::machine::{Action, Dialog, RunState, Step, ask, park};
use super::phases;
pub(crate) use retries::Retries;

/// Returns the next action of a run. A journal that ends at any entry gives the action that was interrupted
/// there.
pub(crate) fn decide(state: &RunState) -> Action {
    if state.finished.is_some() {
        return Action::Rest;
    }
    // Unsent reports first: the reporter must know what the next step may depend on.
    if let Some(report) = state.unsent.first().and_then(|id| state.report(id)) {
        return Action::SendReport {
            id: report.id.clone(),
            request: report.request.clone(),
            at: report.at,
        };
    }
    if let Some(reason) = state.closing() {
        return finish(reason.clone());
    }
    if state.retry.is_some() && state.stop.is_none() {
        return wait_for_retry(state);
    }
    match next(state) {
        Step::Act(action) => *action,
        Step::Retry(reason) => Action::ScheduleRetry { reason },
        Step::Close(reason) => Action::Record(closing(state, reason)),
        Step::Finish(reason) => finish(reason),
        // A change with checks that are worse than before is delivered, but not completed.
        Step::Over => match state.proof().and_then(Proof::failure) {
            Some(reason) => Action::Record(closing(state, reason)),
            None => finish(StopReason::Completed),
        },
    }
}

/// Returns the first step of the first phase that is not over.
fn next(state: &RunState) -> Step {
    if let Some(by) = &state.stop {
        return Step::Close(StopReason::Stopped { by: by.clone() });
    }
    // A moved head comes before the phases, because it makes their results obsolete.
    if let Some(step) = phases::moved(state) {
        return step;
    }
    let phases = jobs::spec(state).phases.iter();
    let mut steps = phases.map(|phase| (phase.next)(state));
    steps
        .find(|step| !matches!(step, Step::Over))
        .unwrap_or(Step::Over)
}

fn finish(reason: StopReason) -> Action {
    Action::Record(Fact::RunFinished { reason })
}

/// Returns the first fact of a run's end. A job that notifies its requester reports the reason first.
fn closing(state: &RunState, reason: StopReason) -> Fact {
    if jobs::spec(state).is_awaited {
        state.stopped(reason)
    } else {
        Fact::RunFinished { reason }
    }
}

/// Notifies the requester of the retry once, then waits.
fn wait_for_retry(state: &RunState) -> Action {
    match &state.retry {
        Some(waiting) if jobs::spec(state).is_awaited && !waiting.told => {
            ask(state, waiting.report(state.job()), None)
        }
        _ => park(state, WaitsFor::Retry),
    }
}

/// Returns the content of the next model call; `None` without a conversation, or without its workspace.
pub(crate) fn conversation(state: &RunState) -> Option<Conversation<'_>> {
    let dialog = jobs::dialog(state, state.dialog()?.phase)?;
    conversation::conversation(state, dialog)
}

/// Returns the content of the model call for this summary; `None` if none is pending, or without its
/// workspace.
pub(crate) fn to_sum_up<'a>(state: &'a RunState, id: &CallId) -> Option<Conversation<'a>> {
    let pending = |known: &'a Dialog| Some((known, known.room.pending.as_ref()?));
    let mut all = state.dialogs.iter().filter_map(pending);
    let (known, pending) = all.find(|(_, pending)| pending.id == *id)?;
    conversation::to_sum_up(state, jobs::dialog(state, known.phase)?, pending)
}
