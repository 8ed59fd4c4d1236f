//! Chooses labels and fields for a new ticket. The model has no workspace and no other tool.

use domain::{
    JobRequest, ModelRole, Phase, PlannedIssue, ReportOutcome, ReportRequest, StopReason, TicketKey,
    WaitsFor, report::OpenIssues,
};

use super::converse::{Progress, converse, postponed};
use crate::run::machine::{
    Call, CallResult, CallState, DialogSpec, PhaseSpec, RunState, Step, ask, await_report, full_reason,
    record_turn, spent,
};
use crate::run::tools::submit_triage;

const MOST_TURNS: usize = 3;
const SUMMARY_CHARS: usize = 500;

const DIALOG: DialogSpec = DialogSpec::new(Phase::Triage, ModelRole::Fast, &[submit_triage::TOOL]);

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    let words = match converse(state, &DIALOG) {
        Progress::Step(step) => return step,
        Progress::Refused(reason) => return postponed(reason),
        Progress::Answered => String::new(),
        Progress::Silent(words) => words,
        Progress::Full => return Step::Close(full_reason(state)),
    };
    if let Some(request) = is_triaged(state).then(|| state.request()).flatten() {
        return part(state, request);
    }
    if state.turns() >= MOST_TURNS {
        let summary = words.chars().take(SUMMARY_CHARS).collect();
        return Step::Close(StopReason::NoChange { summary });
    }
    match spent(state, DIALOG.phase) {
        Some(reason) => Step::Close(reason),
        None => record_turn(state, &DIALOG).into(),
    }
}

fn is_triaged(state: &RunState) -> bool {
    state.reports.iter().any(|report| {
        matches!(report.request, ReportRequest::Triaged(_))
            && matches!(report.outcome, Some(ReportOutcome::Done(_)))
    })
}

/// Opens the parts of a ticket that is too large; otherwise there is nothing to open.
fn part(state: &RunState, request: &JobRequest) -> Step {
    let TicketKey::GitHub { number, .. } = state.run.ticket() else {
        return Step::Over;
    };
    let issues = parts(state, request);
    if issues.is_empty() {
        return Step::Over;
    }
    match state.last_report(|request| matches!(request, ReportRequest::OpenIssues(_))) {
        None => {
            let open = OpenIssues {
                repository: request.repository.clone(),
                parent: Some(*number),
                issues,
            };
            ask(state, open.into(), None).into()
        }
        Some(asked) => match &asked.outcome {
            Some(ReportOutcome::Done(_)) => Step::Over,
            Some(ReportOutcome::Refused(refusal)) => Step::Finish(StopReason::ReportRefused(refusal.clone())),
            Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
        },
    }
}

/// Returns the parts from the accepted call.
fn parts(state: &RunState, request: &JobRequest) -> Vec<PlannedIssue> {
    let is_done = |call: &&Call| {
        let result = match &call.state {
            CallState::Finished { result, .. } => result,
            CallState::Waiting | CallState::Running { .. } => return false,
        };
        call.call.name == submit_triage::TOOL.name
            && matches!(result, CallResult::Settled(ReportOutcome::Done(_)))
    };
    let mut calls = state.turns_of(&DIALOG).iter().flat_map(|turn| &turn.calls);
    let done = calls.find(is_done);
    let parsed = done.map(|call| submit_triage::parse(&call.call.input, state.run.ticket(), request));
    parsed
        .and_then(Result::ok)
        .map(|choice| choice.parts)
        .unwrap_or_default()
}
