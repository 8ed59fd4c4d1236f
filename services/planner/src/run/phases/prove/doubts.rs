//! Reasons to ask the model once whether its change is what the ticket requests.

use domain::check::{ChangeHunk, ChangeReport, EvidenceLevel};
use domain::{ChangeDoubt, CheckRow, FileRole, TicketKind, WorkClass};

use super::hunks::product_numbers;
use super::limits::MOST_LINES;
use crate::run::machine::PlannerRunState;

/// Returns true if the ticket reports a defect.
fn is_bug(state: &PlannerRunState) -> bool {
    let said = state.request().map_or("", |request| request.text.kind.as_str());
    match state.outputs().intake().flatten() {
        Some(intake) => intake.kind == TicketKind::Bug,
        None => said.eq_ignore_ascii_case("bug"),
    }
}

/// Returns the doubts about a change of comments alone, and about one that is too large for its ticket.
pub(super) fn size_doubts(state: &PlannerRunState, change: Option<&ChangeReport>) -> Vec<ChangeDoubt> {
    let Some(change) = change else {
        return Vec::new();
    };
    let mut doubts = Vec::new();
    let has_product = change.changed.iter().any(|file| file.role == FileRole::Product);
    // A change of prose, tests or settings may be all that is requested; one of code comments rarely is.
    if change.code_lines == Some(0) && has_product {
        doubts.push(ChangeDoubt::NoCode);
    }
    let lines = change.product_lines.saturating_add(change.test_lines);
    let [trivial, normal] = MOST_LINES;
    let most = match state.outputs().class() {
        WorkClass::Trivial => trivial,
        WorkClass::Normal => normal,
        WorkClass::Large => u32::MAX,
    };
    if lines > most {
        doubts.push(ChangeDoubt::TooLarge { lines });
    }
    doubts
}

/// Returns the doubt about a bug fix that no test covers.
pub(super) fn cover_doubt(
    state: &PlannerRunState,
    level: EvidenceLevel,
    rows: &[CheckRow],
    unnoticed: &[ChangeHunk],
    change: Option<&ChangeReport>,
) -> Option<ChangeDoubt> {
    let change = change?;
    let parts = product_numbers(change).len();
    let is_none_noticed = parts > 0 && unnoticed.len() == parts;
    let has_tests = rows
        .iter()
        .any(|row| row.head.is_about_the_code() && !row.is_worse());
    (is_bug(state) && level == EvidenceLevel::E1 && has_tests && is_none_noticed)
        .then_some(ChangeDoubt::Uncovered)
}
