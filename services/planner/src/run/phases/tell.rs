//! Sends the one report of a notice.

use domain::{ReportOutcome, StopReason, WaitsFor};

use crate::run::machine::{Input, PhaseSpec, RunState, Step, ask, park, report_failed};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let Input::Notice(_, request) = &state.input else {
        return Step::Over;
    };
    match state.reports.first().map(|report| &report.outcome) {
        None => ask(state, (**request).clone(), None).into(),
        Some(None) => park(state, WaitsFor::Report).into(),
        Some(Some(ReportOutcome::Done(_))) => Step::Over,
        Some(Some(ReportOutcome::Refused(refusal))) => {
            Step::Finish(StopReason::ReportRefused(refusal.clone()))
        }
        Some(Some(ReportOutcome::Failed { detail })) => Step::Retry(report_failed(detail)),
    }
}
