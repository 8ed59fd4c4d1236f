//! Marks a request from a comment as done with a reaction.

use domain::Reaction;

use super::seen::react;
use crate::run::machine::{PhaseSpec, RunState, Step};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let asked = || state.request()?.reactable(state.run.ticket());
    match asked().filter(domain::Reactable::is_comment) {
        Some(_) => react(state, Reaction::Rocket).unwrap_or(Step::Over),
        None => Step::Over,
    }
}
