//! The code is looked up once more with what the first look at the ticket expects to change. Only what is there is shown.

use crate::run::machine::{Action, PhaseSpec, RunState, Step};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let expects = state
        .intake()
        .flatten()
        .is_some_and(|intake| !intake.files.is_empty());
    match expects && state.lookups < 2 && !state.is_at_work() {
        true => Action::FindCode.into(),
        false => Step::Over,
    }
}
