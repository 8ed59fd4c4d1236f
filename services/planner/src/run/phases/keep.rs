//! Work that went on after a proof and ended worse is given up for the state that was proven best.

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
