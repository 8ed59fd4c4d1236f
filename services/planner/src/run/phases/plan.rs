//! Plans a large change before the work. The model only reads.

use domain::{Approval, Class, Fact, JobRequest, ModelRole, Phase, PhaseOutput, Plan, Planned};

use super::converse::handed_in;
use crate::run::machine::{Action, DialogSpec, PhaseSpec, RunState, Step};
use crate::run::tools::{accepted, submit_plan};

const MOST_TURNS: usize = 15;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    is_read_only: true,
    ..DialogSpec::new(Phase::Plan, ModelRole::Default, &[submit_plan::TOOL])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    let is_wanted = state.request().is_some_and(|request| is_wanted(state, request));
    if !is_wanted || state.plan().is_some() || state.is_at_work() {
        return Step::Over;
    }
    // Each revision of the plan gets the same number of turns again.
    let most_turns = MOST_TURNS * (1 + state.returns.len());
    let plan = handed_in(state, &DIALOG, most_turns, |calls| {
        accepted(calls, &submit_plan::TOOL, submit_plan::parse)
    });
    plan.map_or_else(|step| step, over)
}

fn is_wanted(state: &RunState, request: &JobRequest) -> bool {
    match request.rules.agent.plan {
        _ if request.rules.agent.approval == Approval::Plan => true,
        Planned::Never => false,
        Planned::Large => state.class() == Class::Large,
        Planned::Always => true,
    }
}

fn over(plan: Option<Plan>) -> Step {
    let output = PhaseOutput::Plan {
        plan: plan.map(Box::new),
    };
    Action::Record(Fact::PhaseFinished { output }).into()
}
