//! Acknowledges the request with a reaction.

use domain::{Reaction, ReportRequest, report::React};

use crate::run::machine::{PhaseSpec, RunState, Step, ask};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    react(state, Reaction::Eyes).unwrap_or(Step::Over)
}

/// Reacts once to the request. The run does not wait for it, because a reaction has no effect on the work.
pub(super) fn react(state: &RunState, reaction: Reaction) -> Option<Step> {
    let to = state.request()?.reactable(state.run.ticket())?;
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::React(known) if known.reaction == reaction);
    if state.last_report(is_it).is_some() {
        return None;
    }
    Some(ask(state, ReportRequest::React(React { to, reaction }), None).into())
}
