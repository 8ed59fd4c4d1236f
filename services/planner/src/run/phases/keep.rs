//! Restores the best verified snapshot if later work made the change worse.

use crate::run::machine::{Action, PhaseSpec, RunState, Step};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    match state.better() {
        Some(best) if state.handover().is_some() => Action::GoBack {
            snapshot: best.snapshot.clone(),
        }
        .into(),
        _ => Step::Over,
    }
}
