//! Requests a person's approval of the change before its push, where the rules require it. The approval is
//! for one commit.

use domain::{Approval, Proof, Proposal, ReportRequest, Return};

use super::approval::approved;
use super::back::back;
use super::deliver::wanted_push;
use super::describe::describe;
use crate::run::machine::{PhaseSpec, RunState, Step};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let (Some(request), Some(handover)) = (state.request(), state.handover()) else {
        return Step::Over;
    };
    let Some(wanted) = wanted_push(state, request) else {
        return Step::Over;
    };
    let is_pushed = wanted.expected.as_ref() == Some(&wanted.head);
    let is_weak = state.proof().is_some_and(Proof::is_blocked);
    let is_free = request.rules.agent.approval != Approval::BeforePush && !is_weak;
    if is_free || is_pushed {
        return Step::Over;
    }
    let head = wanted.head.clone();
    let proposal = || {
        ReportRequest::DecisionNeeded(Proposal {
            push: wanted,
            description: Some(Box::new(describe(state, request, handover))),
        })
    };
    let revise = |by, feedback| Return::Feedback { by, feedback };
    // A refused change is not for a person to decide: the model gets the reason.
    let refused = |refusal| back(state, Return::Refused(refusal));
    approved(state, &head, proposal, revise, refused)
}
