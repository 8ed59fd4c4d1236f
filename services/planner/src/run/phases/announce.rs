//! Announces the start of the work on the ticket.

use domain::{OutboundAction, report};

use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep, request_report};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::WorkStarted(_));
    match state.request() {
        Some(request) if state.delivery().last_report(is_it).is_none() => {
            let started = OutboundAction::WorkStarted(report::WorkStarted {
                job: request.job,
                repository: request.repository.clone(),
                begun: state.lifecycle().begun().clone(),
            });
            request_report(state, started, None).into()
        }
        _ => RunStep::Over,
    }
}
