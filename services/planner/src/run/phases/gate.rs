//! Requests a person's approval of the change before its push, where the rules require it. The approval is
//! for one commit.

use domain::{ApprovalRule, ChangeProof, OutboundAction, PushProposal, ReturnReason};

use super::approval_request::await_approval;
use super::deliver::wanted_push;
use super::description::describe_change;
use super::return_to_work::go_back_to_work;
use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

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
