//! Decision of a person about a commit or a plan.

use domain::{
    CommitId, DecisionVerdict, OutboundAction, OutboundOutcome, OutboundRefusal, ReturnReason, StopReason,
    WaitCondition,
};

use super::return_to_work::go_back_to_work;
use crate::run::machine::{PlannerRunState, RunStep, await_report, park_run, request_report};

/// Requests approval and waits for it; an approved id is over. `refused` returns the step if approval
/// cannot be requested.
pub(super) fn await_approval(
    state: &PlannerRunState,
    id: &CommitId,
    request: impl FnOnce() -> OutboundAction,
    revise: impl FnOnce(String, String) -> ReturnReason,
    refused: impl FnOnce(OutboundRefusal) -> RunStep,
) -> RunStep {
    if state.gate().is_approved(id) {
        return RunStep::Over;
    }
    if let Some(known) = state.gate().decision_about(id) {
        let (by, feedback) = (known.by.clone(), known.decision.feedback.clone());
        return match known.decision.verdict {
            DecisionVerdict::Reject => RunStep::Close(StopReason::Rejected { by }),
            DecisionVerdict::Approve | DecisionVerdict::Revise => {
                go_back_to_work(state, revise(by, feedback))
            }
        };
    }
    let Some(asked) = state
        .delivery()
        .last_report(|request| request.asks_about() == Some(id))
    else {
        return request_report(state, request(), None).into();
    };
    match &asked.outcome {
        Some(OutboundOutcome::Done(_)) => park_run(state, WaitCondition::Decision).into(),
        Some(OutboundOutcome::Refused(refusal)) => refused(refusal.clone()),
        Some(OutboundOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitCondition::Report),
    }
}
