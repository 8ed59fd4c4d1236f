//! Reverts parts of the change one at a time: a part is not covered if no test notices.

use domain::FileRole;
use domain::check::{ChangeHunk, ChangeReport, CheckOutcome, CheckSpec, TreeKind};

use super::command::CheckCommand;
use super::limits::{MOST_HUNKS, TAKEN_BACK_MS};

/// Coverage of the parts of a change.
pub(super) enum HunkCoverage {
    /// Check that has to run first.
    Missing(CheckSpec),
    /// Parts that no test notices.
    Known(Vec<ChangeHunk>),
}

/// Checks each part of the product. The result is empty if a check fails or is slow, or if there are many
/// parts.
pub(super) fn measure_coverage(change: &ChangeReport, commands: &[CheckCommand<'_>]) -> HunkCoverage {
    let telling: Vec<&CheckCommand<'_>> = commands
        .iter()
        .filter(|command| command.telling_head().is_some())
        .collect();
    let product = product_hunks(change);
    let is_worth_it = !change.truncated && product.len() <= MOST_HUNKS && !telling.is_empty();
    if !is_worth_it || !telling.iter().all(|command| is_quick(command)) {
        return HunkCoverage::Known(Vec::new());
    }
    let mut unnoticed = Vec::new();
    for (number, hunk) in product {
        match is_noticed(change, number, &telling) {
            Err(missing) => return HunkCoverage::Missing(missing),
            Ok(true) => {}
            Ok(false) => unnoticed.push(hunk.clone()),
        }
    }
    HunkCoverage::Known(unnoticed)
}

fn is_quick(command: &CheckCommand<'_>) -> bool {
    let head = command.telling_head();
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
fn is_noticed(change: &ChangeReport, hunk: u32, commands: &[&CheckCommand<'_>]) -> Result<bool, CheckSpec> {
    for command in commands {
        let head = change.tree.clone();
        let spec = command.spec(TreeKind::HeadWithout { head, hunk }, 0);
        match command.checks.result(&spec) {
            None => return Err(spec),
            Some(run) if run.outcome == CheckOutcome::Green => {}
            Some(_) => return Ok(true),
        }
    }
    Ok(false)
}
