//! What a run does next.

use domain::{ReportOutcome, ReportRequest, StopReason, WaitsFor};

use super::implement::implement;
use super::retry::{fail, report_failed, wait_for_retry};
use super::state::{Goal, RunState};
use super::step::{Action, ask, close, finish, park};
use super::triage::triage;

/// The next step of a run; a journal that was cut anywhere gives the step that was cut.
pub(crate) fn decide(state: &RunState) -> Action {
    if state.finished.is_some() {
        return Action::Rest;
    }
    if let Some(report) = state.unsent.first().and_then(|id| state.report(id)) {
        return Action::SendReport {
            id: report.id.clone(),
            request: report.request.clone(),
            at: report.at,
        };
    }
    if let Some(reason) = state.closing() {
        return finish(reason.clone());
    }
    if let (Some(retry), None) = (&state.retry, &state.stop) {
        return wait_for_retry(state, retry);
    }
    match &state.goal {
        Goal::Tell(_, request) => tell(state, request),
        Goal::Unsupported(_) => close(state, StopReason::UnsupportedJob),
        Goal::Implement(request) => implement(state, request),
        Goal::Triage(request) => triage(state, request),
    }
}

fn tell(state: &RunState, request: &ReportRequest) -> Action {
    match state.reports.first().map(|report| &report.outcome) {
        None => ask(state, request.clone(), None),
        Some(None) => park(state, WaitsFor::Report),
        Some(Some(ReportOutcome::Done(_))) => finish(StopReason::Completed),
        Some(Some(ReportOutcome::Refused { detail })) => finish(StopReason::ReportRefused {
            detail: detail.clone(),
        }),
        Some(Some(ReportOutcome::Failed { detail })) => fail(report_failed(detail)),
    }
}
