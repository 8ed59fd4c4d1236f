//! Announces the start of the work on the ticket.

use domain::{ReportRequest, report};

use crate::run::machine::{PhaseSpec, RunState, Step, ask};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::WorkStarted(_));
    match state.request() {
        Some(request) if state.last_report(is_it).is_none() => {
            let started = ReportRequest::WorkStarted(report::WorkStarted {
                job: request.job,
                repository: request.repository.clone(),
                begun: state.begun.clone(),
            });
            ask(state, started, None).into()
        }
        _ => Step::Over,
    }
}
