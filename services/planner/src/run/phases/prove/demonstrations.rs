//! Verifies the output that the model claims for commands, with the change and at the base.

use domain::check::{CheckSpec, CompletedCheck, TreeKind};
use domain::{DemonstrationClaim, DemonstrationResult, WorkHandover};

use super::{DEMONSTRATION_S, SEEN};
use crate::run::machine::RunChecks;

/// Returns the missing runs.
pub(super) fn missing_demonstrations(checks: &RunChecks, handover: &WorkHandover) -> Vec<CheckSpec> {
    let trees = [TreeKind::Head, TreeKind::Base];
    let runs = handover.demonstrations.iter().flat_map(|said| {
        trees
            .each_ref()
            .map(|tree| demonstration_spec(said, tree.clone()))
    });
    runs.filter(|spec| checks.result(spec).is_none()).collect()
}

/// Returns the result of each demonstration.
pub(super) fn demonstration_results(checks: &RunChecks, handover: &WorkHandover) -> Vec<DemonstrationResult> {
    let said = handover.demonstrations.iter();
    said.filter_map(|said| demonstration_result(checks, said))
        .collect()
}

fn demonstration_result(checks: &RunChecks, said: &DemonstrationClaim) -> Option<DemonstrationResult> {
    let head = checks.result(&demonstration_spec(said, TreeKind::Head))?;
    let base = checks.result(&demonstration_spec(said, TreeKind::Base))?;
    let is_there = is_conclusive(head) && head.output_tail.contains(&said.prints);
    // Truncated output may have contained the text, and an interrupted command may have printed it later.
    let is_new = is_conclusive(base) && !base.truncated && !base.output_tail.contains(&said.prints);
    Some(DemonstrationResult {
        command: said.command.clone(),
        prints: said.prints.clone(),
        before: last_line(&base.output_tail),
        after: line_with(&head.output_tail, &said.prints).unwrap_or_else(|| last_line(&head.output_tail)),
        is_shown: is_there && is_new,
    })
}

fn demonstration_spec(said: &DemonstrationClaim, tree: TreeKind) -> CheckSpec {
    CheckSpec {
        command: said.command.clone(),
        directory: String::new(),
        tree,
        again: 0,
        limit_s: Some(DEMONSTRATION_S),
        reports: Vec::new(),
    }
}

/// Returns true for a complete run. It need not run tests, and a command that the base lacks is evidence as
/// well.
const fn is_conclusive(run: &CompletedCheck) -> bool {
    !run.outcome.is_cut_short()
}

fn line_with(output: &str, text: &str) -> Option<String> {
    let mut lines = output.lines();
    let first = text.lines().next()?;
    lines.find(|line| line.contains(first)).map(truncate_line)
}

fn last_line(output: &str) -> String {
    let mut lines = output.lines().rev().map(str::trim);
    truncate_line(lines.find(|line| !line.is_empty()).unwrap_or_default())
}

fn truncate_line(line: &str) -> String {
    line.trim().chars().take(SEEN).collect()
}
