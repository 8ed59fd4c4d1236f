//! Decides the next action of a run.

mod retries;

use domain::{CallId, ChangeProof, Fact, StopReason, WaitCondition};

use super::jobs;
use super::machine::conversation::{self, ConversationView};
use super::machine::{
    PhaseDialog, PlannerRunState, RunAction, RunStep, park_run, report_end, request_report,
};
use super::phases;
pub(crate) use retries::RetryPolicy;

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
        // A change with checks that are worse than before is delivered, but not completed.
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
        Some(waiting) if jobs::job_spec(state).is_awaited && !waiting.told => {
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
    let pending = |known: &'a PhaseDialog| Some((known, known.room.pending.as_ref()?));
    let mut all = state.conversation().dialogs().iter().filter_map(pending);
    let (known, pending) = all.find(|(_, pending)| pending.id == *id)?;
    conversation::view_for_summary(state, jobs::phase_dialog(state, known.phase)?, pending)
}
