//! The code that the ticket may be about is looked up, so that the model begins there. It is never waited for.

use crate::run::machine::{Action, PhaseSpec, RunState, Step};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    match state.code {
        None => Action::FindCode.into(),
        Some(_) => Step::Over,
    }
}
