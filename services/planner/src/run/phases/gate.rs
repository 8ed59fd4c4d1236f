//! Requests a person's approval of the change before its push, where the rules require it. The approval is
//! for one commit.

use domain::{
    ApprovalRule, ChangeProof, CommitId, DecisionVerdict, OutboundAction, OutboundOutcome, OutboundRefusal,
    PushProposal, ReturnReason, StopReason, WaitCondition,
};

use super::deliver::wanted_push;
use super::description::describe_change;
use super::rework::go_back_to_work;
use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep, await_report, park_run, request_report};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::without_dialog(decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let (Some(request), Some(handover)) = (state.request(), state.outputs().handover()) else {
        return RunStep::Over;
    };
    let Some(wanted) = wanted_push(state, request) else {
        return RunStep::Over;
    };
    let is_pushed = wanted.expected.as_ref() == Some(&wanted.head);
    let is_weak = state.outputs().proof().is_some_and(ChangeProof::is_blocked);
    let is_free = request.rules.agent.approval != ApprovalRule::BeforePush && !is_weak;
    if is_free || is_pushed {
        return RunStep::Over;
    }
    let head = wanted.head.clone();
    let proposal = || {
        OutboundAction::DecisionNeeded(PushProposal {
            push: wanted,
            description: Some(Box::new(describe_change(state, request, handover))),
        })
    };
    let revise = |by, feedback| ReturnReason::Feedback { by, feedback };
    // A refused change is not for a person to decide: the model gets the reason.
    let refused = |refusal| go_back_to_work(state, ReturnReason::Refused(refusal));
    await_approval(state, &head, proposal, revise, refused)
}

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
