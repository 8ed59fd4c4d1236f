//! Searches for code again, with the files that the triage expects to change. The result contains only
//! existing files.

use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let expects = state
        .outputs()
        .intake()
        .flatten()
        .is_some_and(|intake| !intake.files.is_empty());
    // The first search was at the start of the run; more than one further search brings nothing new.
    match expects && state.source().lookups() < 2 && !state.conversation().is_at_work() {
        true => RunAction::FindCode.into(),
        false => RunStep::Over,
    }
}
