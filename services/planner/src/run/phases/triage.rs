//! Chooses labels and fields for a new ticket. The model has no workspace and no other tool.

use domain::{
    JobRequest, ModelRole, OutboundAction, OutboundOutcome, PlannedIssue, RunPhase, StopReason, TicketKey,
    report::OpenIssues,
};

use super::conversation_loop::{ConversationProgress, advance_conversation, postpone_run};
use crate::run::machine::{
    CallResult, DialogSpec, PhaseSpec, PlannerRunState, RunStep, TurnCall, finish_refused, full_reason,
    record_turn, report_once, spent_reason,
};
use crate::run::tools::submit_triage;

const MOST_TURNS: usize = 3;
const SUMMARY_CHARS: usize = 500;

const DIALOG: DialogSpec = DialogSpec::new(RunPhase::Triage, ModelRole::Fast, &[submit_triage::TOOL]);

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let words = match advance_conversation(state, &DIALOG) {
        ConversationProgress::Step(step) => return step,
        ConversationProgress::Refused(reason) => return postpone_run(reason),
        ConversationProgress::Answered => String::new(),
        ConversationProgress::Silent(words) => words,
        ConversationProgress::Full => return RunStep::Close(full_reason(state)),
    };
    if let Some(request) = is_triaged(state).then(|| state.request()).flatten() {
        return open_parts(state, request);
    }
    if state.conversation().turn_count() >= MOST_TURNS {
        let summary = words.chars().take(SUMMARY_CHARS).collect();
        return RunStep::Close(StopReason::NoChange { summary });
    }
    match spent_reason(state, DIALOG.phase) {
        Some(reason) => RunStep::Close(reason),
        None => record_turn(state, &DIALOG).into(),
    }
}

fn is_triaged(state: &PlannerRunState) -> bool {
    state.delivery().reports().iter().any(|report| {
        matches!(report.request, OutboundAction::Triaged(_))
            && matches!(report.outcome, Some(OutboundOutcome::Done(_)))
    })
}

/// Opens the parts of a ticket that is too large; otherwise there is nothing to open.
fn open_parts(state: &PlannerRunState, request: &JobRequest) -> RunStep {
    let TicketKey::GitHub { number, .. } = state.run.ticket() else {
        return RunStep::Over;
    };
    let issues = accepted_parts(state, request);
    if issues.is_empty() {
        return RunStep::Over;
    }
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::OpenIssues(_));
    let open = || {
        OutboundAction::OpenIssues(OpenIssues {
            repository: request.repository.clone(),
            parent: Some(*number),
            issues,
        })
    };
    report_once(state, is_it, open, finish_refused)
}

/// Returns the parts from the accepted call.
fn accepted_parts(state: &PlannerRunState, request: &JobRequest) -> Vec<PlannedIssue> {
    let is_done = |call: &&TurnCall| {
        call.call.name == submit_triage::TOOL.name
            && matches!(
                call.outcome(),
                Some(CallResult::Settled(OutboundOutcome::Done(_)))
            )
    };
    let mut calls = DIALOG.turns(state).iter().flat_map(|turn| &turn.calls);
    let done = calls.find(is_done);
    let parsed = done.map(|call| submit_triage::parse_triage(&call.call.input, state.run.ticket(), request));
    parsed
        .and_then(Result::ok)
        .map(|choice| choice.parts)
        .unwrap_or_default()
}
