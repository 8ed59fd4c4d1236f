//! A large change is planned before it is made. The model reads, and changes nothing.

use domain::{Approval, Class, Fact, JobRequest, ModelRole, Phase, PhaseOutput, Plan, Planned};

use super::converse::{Progress, converse};
use crate::run::machine::{Action, DialogSpec, PhaseSpec, RunState, Step, record_turn, spent};
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
    if let Progress::Step(step) = converse(state, &DIALOG) {
        return step;
    }
    let turns = state.turns_of(&DIALOG);
    if state.came_back_to(Phase::Plan) {
        return record_turn(state, &DIALOG).into();
    }
    let calls = turns.last().map_or(&[][..], |turn| &turn.calls);
    match accepted(calls, &submit_plan::TOOL, submit_plan::parse) {
        Some(plan) => over(Some(plan)),
        None if turns.len() < MOST_TURNS * (1 + state.returns.len())
            && spent(state, DIALOG.phase).is_none() =>
        {
            record_turn(state, &DIALOG).into()
        }
        None => over(None),
    }
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
