//! Acknowledges the request with a reaction.

use domain::{OutboundAction, ReactionKind, report::ReactionRequest};

use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep, request_report};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    react_once(state, ReactionKind::Eyes).unwrap_or(RunStep::Over)
}

/// Reacts once to the request. The run does not wait for it, because a reaction has no effect on the work.
pub(super) fn react_once(state: &PlannerRunState, reaction: ReactionKind) -> Option<RunStep> {
    let to = state.request()?.reactable(state.run.ticket())?;
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::React(known) if known.reaction == reaction);
    if state.delivery().last_report(is_it).is_some() {
        return None;
    }
    Some(
        request_report(
            state,
            OutboundAction::React(ReactionRequest { to, reaction }),
            None,
        )
        .into(),
    )
}
