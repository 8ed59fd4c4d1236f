//! A person approves the change before it is pushed, where the rules want it. The approval is for one commit.

use domain::{
    Approval, Proof, Proposal, ReportOutcome, ReportRequest, Return, StopReason, Verdict, WaitsFor,
};

use super::back::back;
use super::deliver::{settled, wanted_push};
use super::describe::describe;
use crate::run::machine::{PhaseSpec, RunState, Step, ask, park};

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
    if is_free || is_pushed || state.approved.as_ref() == Some(&wanted.head) {
        return Step::Over;
    }
    if let Some((decision, by)) = state.decision_about(&wanted.head) {
        let (by, feedback) = (by.clone(), decision.feedback.clone());
        return match decision.verdict {
            Verdict::Reject => Step::Close(StopReason::Rejected { by }),
            Verdict::Approve | Verdict::Revise => back(state, Return::Feedback { by, feedback }),
        };
    }
    let about = |request: &ReportRequest| matches!(request, ReportRequest::DecisionNeeded(asked) if asked.push.head == wanted.head);
    let Some(asked) = state.last_report(about) else {
        let proposal = Proposal {
            push: wanted,
            description: Some(Box::new(describe(state, request, handover))),
        };
        return ask(state, ReportRequest::DecisionNeeded(proposal), None).into();
    };
    match &asked.outcome {
        Some(ReportOutcome::Done(_)) => park(state, WaitsFor::Decision).into(),
        // Nobody is asked about a change that may not be pushed: the model hears why.
        _ => settled(state, asked),
    }
}
