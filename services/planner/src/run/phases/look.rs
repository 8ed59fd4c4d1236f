//! Searches for code that matches the ticket, as a starting point for the model. It never waits for the
//! index.

use crate::run::machine::{Action, PhaseSpec, RunState, Step};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    match state.code {
        None => Action::FindCode.into(),
        Some(_) => Step::Over,
    }
}
