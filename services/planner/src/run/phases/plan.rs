//! Plans a large change before the work, and requests a person's decision about the plan. The model only
//! reads.

use domain::{
    ApprovalRule, ChangePlan, CommitId, JobRequest, ModelRole, OutboundAction, PhaseOutput, PlanningRule,
    ReturnReason, RunPhase, StopReason, WorkClass, report,
};

use super::conversation_loop::await_submission;
use super::gate::await_approval;
use crate::run::machine::{DialogSpec, PhaseSpec, PlannerRunState, RunStep, hash_text};
use crate::run::tools::{accepted_input, plans, read_attachment};

const MOST_TURNS: usize = 15;

const DIALOG: DialogSpec = DialogSpec::reading(
    RunPhase::Plan,
    ModelRole::Default,
    &[plans::SUBMIT_PLAN, read_attachment::TOOL],
);

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let is_wanted = state
        .request()
        .is_some_and(|request| is_plan_wanted(state, request));
    if !is_wanted || !state.outputs().plan().is_pending() || state.conversation().is_at_work() {
        return RunStep::Over;
    }
    // Each revision of the plan gets the same number of turns again.
    let most_turns = MOST_TURNS * (1 + state.outputs().returns().len());
    let plan = await_submission(state, &DIALOG, most_turns, |calls| {
        accepted_input(calls, &plans::SUBMIT_PLAN, plans::parse_plan)
    });
    plan.map_or_else(|step| step, finish_phase)
}

fn is_plan_wanted(state: &PlannerRunState, request: &JobRequest) -> bool {
    match request.rules.agent.plan {
        _ if request.rules.agent.approval == ApprovalRule::Plan => true,
        PlanningRule::Never => false,
        PlanningRule::Large => state.outputs().class() == WorkClass::Large,
        PlanningRule::Always => true,
    }
}

fn finish_phase(plan: Option<ChangePlan>) -> RunStep {
    PhaseOutput::Plan {
        plan: plan.map(Box::new),
    }
    .into()
}

/// Requests a person's decision about the plan before the work, where the rules require it.
pub(in crate::run) const APPROVAL: PhaseSpec = PhaseSpec::without_dialog(decide_approval);

fn decide_approval(state: &PlannerRunState) -> RunStep {
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    let plan = state.outputs().plan();
    let is_wanted = request.rules.agent.approval == ApprovalRule::Plan;
    if !is_wanted || plan.is_pending() || state.conversation().is_at_work() {
        return RunStep::Over;
    }
    match plan.present().zip(plan_id(state)) {
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
