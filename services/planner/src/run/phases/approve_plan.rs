//! A person decides about the plan before the work, where the rules want it.

use domain::{
    Approval, CommitId, JobRequest, Plan, ReportOutcome, ReportRequest, Return, StopReason, Verdict, WaitsFor,
};

use super::back::back;
use crate::run::machine::{PhaseSpec, RunState, Step, ask, await_report, hash, park};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let (Some(request), Some(plan)) = (state.request(), state.plan()) else {
        return Step::Over;
    };
    if request.rules.agent.approval != Approval::Plan || state.is_at_work() {
        return Step::Over;
    }
    match plan.zip(id(state)) {
        Some((plan, id)) => decide(state, request, plan, &id),
        None => Step::Close(StopReason::NoPlan),
    }
}

/// Stands for the plan in a decision: each one of a run has its own.
fn id(state: &RunState) -> Option<CommitId> {
    let name = |part| hash(&format!("{} {} {part}", state.run, state.returns.len()));
    let text = format!("{:016x}{:016x}{:016x}", name(1), name(2), name(3));
    text[..40].parse().ok()
}

fn decide(state: &RunState, request: &JobRequest, plan: &Plan, id: &CommitId) -> Step {
    if state.approved.as_ref() == Some(id) {
        return Step::Over;
    }
    if let Some((decision, by)) = state.decision_about(id) {
        let (by, feedback) = (by.clone(), decision.feedback.clone());
        return match decision.verdict {
            Verdict::Reject => Step::Close(StopReason::Rejected { by }),
            Verdict::Approve | Verdict::Revise => back(state, Return::Replan { by, feedback }),
        };
    }
    let about = |request: &ReportRequest| matches!(request, ReportRequest::PlanProposed { id: asked, .. } if asked == id);
    let Some(asked) = state.last_report(about) else {
        let proposed = ReportRequest::PlanProposed {
            repository: request.repository.clone(),
            id: id.clone(),
            plan: Box::new(plan.clone()),
        };
        return ask(state, proposed, None).into();
    };
    match &asked.outcome {
        Some(ReportOutcome::Done(_)) => park(state, WaitsFor::Decision).into(),
        Some(ReportOutcome::Refused { detail }) => Step::Close(StopReason::ReportRefused {
            detail: detail.clone(),
        }),
        Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
    }
}
