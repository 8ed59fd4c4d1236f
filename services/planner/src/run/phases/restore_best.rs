//! Restores the best verified snapshot if later work made the change worse.

use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    match state.better() {
        Some(best) if state.handover().is_some() => RunAction::GoBack {
            snapshot: best.snapshot.clone(),
        }
        .into(),
        _ => RunStep::Over,
    }
}
