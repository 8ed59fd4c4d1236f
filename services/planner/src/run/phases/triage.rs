//! The model chooses labels for a new ticket; it sees no workspace and no other tool.

use domain::{ModelRole, Phase, ReportOutcome, ReportRequest, StopReason};

use super::converse::{Progress, converse, postponed};
use crate::run::machine::{DialogSpec, PhaseSpec, RunState, Step, record_turn, spent};
use crate::run::tools::add_labels;

const MOST_TURNS: usize = 3;
const SUMMARY_CHARS: usize = 500;

const DIALOG: DialogSpec = DialogSpec::new(Phase::Triage, ModelRole::Fast, &[add_labels::TOOL]);

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
        Progress::Full => return Step::Close(StopReason::ContextTooLong),
    };
    if is_labeled(state) {
        return Step::Over;
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

fn is_labeled(state: &RunState) -> bool {
    state.reports.iter().any(|report| {
        matches!(report.request, ReportRequest::AddLabels(_))
            && matches!(report.outcome, Some(ReportOutcome::Done(_)))
    })
}
