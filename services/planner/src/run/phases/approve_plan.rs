//! Requests a person's decision about the plan before the work, where the rules require it.

use domain::{
    ApprovalRule, ChangePlan, CommitId, JobRequest, OutboundAction, ReturnReason, StopReason, report,
};

use super::approval_request::await_approval;
use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep, hash_text};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let (Some(request), Some(plan)) = (state.request(), state.outputs().plan()) else {
        return RunStep::Over;
    };
    if request.rules.agent.approval != ApprovalRule::Plan || state.conversation().is_at_work() {
        return RunStep::Over;
    }
    match plan.zip(plan_id(state)) {
        Some((plan, id)) => decide_plan(state, request, plan, &id),
        None => RunStep::Close(StopReason::NoPlan),
    }
}

/// Returns the plan's id for a decision, which is unique within the run.
fn plan_id(state: &PlannerRunState) -> Option<CommitId> {
    let returns = state.outputs().returns().len();
    let name = |part| hash_text(&format!("{} {returns} {part}", state.run));
    let text = format!("{:016x}{:016x}{:016x}", name(1), name(2), name(3));
    text[..40].parse().ok()
}

fn decide_plan(state: &PlannerRunState, request: &JobRequest, plan: &ChangePlan, id: &CommitId) -> RunStep {
    let proposal = || {
        OutboundAction::PlanProposed(report::PlanProposed {
            repository: request.repository.clone(),
            id: id.clone(),
            plan: Box::new(plan.clone()),
        })
    };
    let revise = |by, feedback| ReturnReason::Replan { by, feedback };
    let refused = |refusal| RunStep::Close(StopReason::ReportRefused(refusal));
    await_approval(state, id, proposal, revise, refused)
}
