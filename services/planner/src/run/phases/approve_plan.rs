//! Requests a person's decision about the plan before the work, where the rules require it.

use domain::{Approval, CommitId, JobRequest, Plan, ReportRequest, Return, StopReason, report};

use super::approval::approved;
use crate::run::machine::{PhaseSpec, RunState, Step, hash};

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

/// Returns the plan's id for a decision, which is unique within the run.
fn id(state: &RunState) -> Option<CommitId> {
    let name = |part| hash(&format!("{} {} {part}", state.run, state.returns.len()));
    let text = format!("{:016x}{:016x}{:016x}", name(1), name(2), name(3));
    text[..40].parse().ok()
}

fn decide(state: &RunState, request: &JobRequest, plan: &Plan, id: &CommitId) -> Step {
    let proposal = || {
        ReportRequest::PlanProposed(report::PlanProposed {
            repository: request.repository.clone(),
            id: id.clone(),
            plan: Box::new(plan.clone()),
        })
    };
    let revise = |by, feedback| Return::Replan { by, feedback };
    let refused = |refusal| Step::Close(StopReason::ReportRefused(refusal));
    approved(state, id, proposal, revise, refused)
}
