//! Plans a large change before the work. The model only reads.

use domain::{
    ApprovalRule, ChangePlan, Fact, JobRequest, ModelRole, PhaseOutput, PlanningRule, RunPhase, WorkClass,
};

use super::conversation_loop::await_submission;
use crate::run::machine::{DialogSpec, PhaseSpec, PlannerRunState, RunAction, RunStep};
use crate::run::tools::{accepted_input, plans};

const MOST_TURNS: usize = 15;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    is_read_only: true,
    ..DialogSpec::new(RunPhase::Plan, ModelRole::Default, &[plans::SUBMIT_PLAN])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let is_wanted = state
        .request()
        .is_some_and(|request| is_plan_wanted(state, request));
    if !is_wanted || state.outputs().plan().is_some() || state.conversation().is_at_work() {
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
    let output = PhaseOutput::Plan {
        plan: plan.map(Box::new),
    };
    RunAction::Record(Fact::PhaseFinished { output }).into()
}
