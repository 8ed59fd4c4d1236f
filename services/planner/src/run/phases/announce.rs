//! The ticket hears that work starts.

use domain::{ReportRequest, report};

use crate::run::machine::{PhaseSpec, RunState, Step, ask};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    match state.request() {
        Some(request) if state.reports.is_empty() => {
            let started = ReportRequest::WorkStarted(report::WorkStarted {
                job: request.job,
                repository: request.repository.clone(),
            });
            ask(state, started, None).into()
        }
        _ => Step::Over,
    }
}
