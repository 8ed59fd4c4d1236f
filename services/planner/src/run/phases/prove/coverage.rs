//! Coverage of the change by tests, and doubts about the change.
//!
//! Parts of the change are reverted one at a time: a part is not covered if no test notices. The model gets a
//! question about a doubt once.

use domain::check::{ChangeHunk, ChangeReport, CheckOutcome, CheckSpec, EvidenceLevel};
use domain::{ChangeDoubt, CheckRow, FileRole, TicketKind, WorkClass};

use super::command::CheckCommand;
use super::{MOST_HUNKS, MOST_LINES, TAKEN_BACK_MS};
use crate::run::machine::PlannerRunState;

/// Coverage of the parts of a change.
pub(super) enum HunkCoverage {
    /// Checks that have to run first.
    Missing(Vec<CheckSpec>),
    /// Parts that no test notices.
    Known(Vec<ChangeHunk>),
}

/// Checks each part of the product. The result is empty if a check fails or is slow, or if there are many
/// parts.
pub(super) fn measure_coverage(change: &ChangeReport, commands: &[CheckCommand<'_>]) -> HunkCoverage {
    let conclusive: Vec<&CheckCommand<'_>> = commands
        .iter()
        .filter(|command| command.conclusive_head().is_some())
        .collect();
    let product = product_hunks(change);
    let is_worth_it = !change.truncated && product.len() <= MOST_HUNKS && !conclusive.is_empty();
    if !is_worth_it || !conclusive.iter().all(|command| is_quick(command)) {
        return HunkCoverage::Known(Vec::new());
    }
    let (mut unnoticed, mut missing) = (Vec::new(), Vec::new());
    for (number, hunk) in product {
        match is_noticed(number, &conclusive) {
            Err(check) => missing.push(check),
            Ok(true) => {}
            Ok(false) => unnoticed.push(hunk.clone()),
        }
    }
    if missing.is_empty() {
        HunkCoverage::Known(unnoticed)
    } else {
        HunkCoverage::Missing(missing)
    }
}

fn is_quick(command: &CheckCommand<'_>) -> bool {
    let head = command.conclusive_head();
    head.is_some_and(|run| run.outcome == CheckOutcome::Green && run.duration_ms < TAKEN_BACK_MS)
}

/// Returns the numbers of the product's hunks among all hunks.
pub(super) fn product_numbers(change: &ChangeReport) -> Vec<u32> {
    product_hunks(change)
        .into_iter()
        .map(|(number, _)| number)
        .collect()
}

/// Returns the hunks of product files with their numbers among all hunks.
fn product_hunks(change: &ChangeReport) -> Vec<(u32, &ChangeHunk)> {
    let is_product = |hunk: &ChangeHunk| {
        let file = change.changed.iter().find(|file| file.path == hunk.path);
        !hunk.is_test && file.is_none_or(|file| file.role == FileRole::Product)
    };
    let numbered = (0_u32..).zip(&change.hunks);
    numbered.filter(|(_, hunk)| is_product(hunk)).collect()
}

/// Returns true if a command ends differently without this part, or the missing check. A run without a
/// result for the code does not make the part uncovered.
fn is_noticed(hunk: u32, commands: &[&CheckCommand<'_>]) -> Result<bool, CheckSpec> {
    for command in commands {
        let Some(tree) = command.without_part(hunk) else {
            continue;
        };
        let spec = command.spec(tree, 0);
        match command.checks.result(&spec) {
            None => return Err(spec),
            Some(run) if run.outcome == CheckOutcome::Green => {}
            Some(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// Returns true if the ticket reports a defect.
fn is_bug(state: &PlannerRunState) -> bool {
    let said = state.request().map_or("", |request| request.text.kind.as_str());
    match state.outputs().intake().present() {
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
