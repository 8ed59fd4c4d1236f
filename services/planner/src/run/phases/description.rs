//! Description of a change for its approvers and reviewers.

use std::collections::BTreeSet;

use domain::check::ChangeReport;
use domain::{
    ChangeDescription, ChangeReview, ChangeStatistics, ChangedFileSize, FileRole, JobRequest,
    ReviewObjection, WorkHandover, fill_template,
};

use super::preparation::effort_so_far;
use crate::run::machine::PlannerRunState;
use crate::run::tools::widen_scope;

pub(super) fn describe_change(
    state: &PlannerRunState,
    request: &JobRequest,
    handover: &WorkHandover,
) -> ChangeDescription {
    let proof = state.outputs().proof();
    let change = state.verification().checks().report();
    // An executor of an earlier release names no files.
    let change = change.filter(|change| !change.changed.is_empty());
    ChangeDescription {
        handover: handover.clone(),
        cut_short: state.outputs().cut_short().cloned(),
        kind: request.text.kind.clone(),
        ticket: request.text.summary.clone(),
        change: change
            .map(|change| ChangeStatistics::of(&change.changed, &touched_modules(state, request, change))),
        checks: proof.map(|proof| proof.rows.clone()).unwrap_or_default(),
        demonstrations: proof
            .map(|proof| proof.demonstrations.clone())
            .unwrap_or_default(),
        effort: Some(effort_so_far(state)),
        level: proof.map(|proof| proof.level),
        findings: proof.map(|proof| proof.findings.clone()).unwrap_or_default(),
        widened: widen_scope::granted_modules(state, request),
        outside: proof.map(|proof| proof.outside.clone()).unwrap_or_default(),
        unnoticed: proof.map(|proof| proof.unnoticed.clone()).unwrap_or_default(),
        shown_by: proof.and_then(|proof| proof.shown_by),
        template: state
            .source()
            .open_workspace()
            .map(|info| fill_template(&info.template, &handover.template))
            .unwrap_or_default(),
        untested_contracts: change
            .map(|change| untested_contracts(request, &change.changed))
            .unwrap_or_default(),
        unrepaired: proof.map(|proof| proof.unrepaired.clone()).unwrap_or_default(),
        skipped_checks: proof
            .map(|proof| proof.skipped_checks.clone())
            .unwrap_or_default(),
        ignored: state
            .source()
            .work()
            .snapshot
            .as_ref()
            .map(|kept| kept.ignored.clone())
            .unwrap_or_default(),
        objections: open_objections(state),
        went_back: state.verification().went_back(),
        unreviewed: state.outputs().review().is_some_and(|review| !review.is_complete),
    }
}

/// Returns the touched modules of the rules; without rules, those that the executor found.
fn touched_modules(state: &PlannerRunState, request: &JobRequest, change: &ChangeReport) -> Vec<String> {
    if request.rules.modules.is_empty() {
        return change.modules.clone();
    }
    let scope = widen_scope::run_scope(state, request);
    let touched = change
        .changed
        .iter()
        .filter_map(|file| scope.module_of(&file.path));
    let named: BTreeSet<&str> = touched.map(|module| module.name.as_str()).collect();
    named.into_iter().map(str::to_owned).collect()
}

/// Returns the changed contract files if no test file changed.
fn untested_contracts(request: &JobRequest, changed: &[ChangedFileSize]) -> Vec<String> {
    if changed.iter().any(|file| file.role == FileRole::Test) {
        return Vec::new();
    }
    let contracts = changed
        .iter()
        .filter(|file| request.rules.agent.is_contract(&file.path));
    contracts.map(|file| file.path.clone()).collect()
}

/// Returns the reviewer's open objections.
fn open_objections(state: &PlannerRunState) -> Vec<String> {
    let review = state.outputs().review().into_iter();
    review
        .flat_map(ChangeReview::blocking)
        .map(ReviewObjection::in_a_line)
        .collect()
}
