//! Searches for code that matches the ticket, as a starting point for the model. It never waits for the
//! index.

use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    match state.source().code() {
        None => RunAction::FindCode.into(),
        Some(_) => RunStep::Over,
    }
}
