//! Sends the one report of a notice.

use domain::{OutboundOutcome, StopReason, WaitCondition};

use crate::run::machine::{
    PhaseSpec, PlannerRunState, RunInput, RunStep, park_run, report_failed, request_report,
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let RunInput::Notice(_, request) = &state.input else {
        return RunStep::Over;
    };
    match state.delivery().reports().first().map(|report| &report.outcome) {
        None => request_report(state, (**request).clone(), None).into(),
        Some(None) => park_run(state, WaitCondition::Report).into(),
        Some(Some(OutboundOutcome::Done(_))) => RunStep::Over,
        Some(Some(OutboundOutcome::Refused(refusal))) => {
            RunStep::Finish(StopReason::ReportRefused(refusal.clone()))
        }
        Some(Some(OutboundOutcome::Failed { detail })) => RunStep::Retry(report_failed(detail)),
    }
}
