//! Restores the best verified snapshot if later work made the change worse.

use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let work = state.source().work();
    match state.verification().better(state.outputs(), work) {
        Some(best) if state.outputs().handover().is_some() => RunAction::GoBack {
            snapshot: best.clone(),
        }
        .into(),
        _ => RunStep::Over,
    }
}
