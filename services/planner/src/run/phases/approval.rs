//! Decision of a person about a commit or a plan.

use domain::{CommitId, Refusal, ReportOutcome, ReportRequest, Return, StopReason, Verdict, WaitsFor};

use super::back::back;
use crate::run::machine::{RunState, Step, ask, await_report, park};

/// Requests approval and waits for it; an approved id is over. `refused` returns the step if approval
/// cannot be requested.
pub(super) fn approved(
    state: &RunState,
    id: &CommitId,
    request: impl FnOnce() -> ReportRequest,
    revise: impl FnOnce(String, String) -> Return,
    refused: impl FnOnce(Refusal) -> Step,
) -> Step {
    if state.approved.as_ref() == Some(id) {
        return Step::Over;
    }
    if let Some((decision, by)) = state.decision_about(id) {
        let (by, feedback) = (by.clone(), decision.feedback.clone());
        return match decision.verdict {
            Verdict::Reject => Step::Close(StopReason::Rejected { by }),
            Verdict::Approve | Verdict::Revise => back(state, revise(by, feedback)),
        };
    }
    let Some(asked) = state.last_report(|request| request.asks_about() == Some(id)) else {
        return ask(state, request(), None).into();
    };
    match &asked.outcome {
        Some(ReportOutcome::Done(_)) => park(state, WaitsFor::Decision).into(),
        Some(ReportOutcome::Refused(refusal)) => refused(refusal.clone()),
        Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
    }
}
