//! Marks a request from a comment as done with a reaction.

use domain::ReactionKind;

use super::acknowledge::react_once;
use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let asked = || state.request()?.reactable(state.run.ticket());
    match asked().filter(domain::ReactionSubject::is_comment) {
        Some(_) => react_once(state, ReactionKind::Rocket).unwrap_or(RunStep::Over),
        None => RunStep::Over,
    }
}
