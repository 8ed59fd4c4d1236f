//! Resolution of a conflict with the base branch: its limits, and the hunks that the result must keep.

use domain::check::ChangeReport;
use domain::{
    ConflictFile, ConflictLeft, PhaseOutput, ReturnReason, StopReason, WorkExit, WorkHandover,
    list_unnamed_hunks,
};

use super::rework::{can_work, count_returns, go_back_to_work};
use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep};

// Limits above which people resolve the conflict: conflicting files, hunks between markers, and bytes of the files
// with markers.
const MOST_FILES: usize = 20;
const MOST_HUNKS: u32 = 60;
const MOST_BYTES: u64 = 512 * 1024;
// Maximum of returns to the model because of lost hunks.
const MOST_RETURNS: usize = 2;
// Files that a comment names.
const NAMED_FILES: usize = 20;
// Type of the commit that git merges without the model.
const MERGE_KIND: &str = "chore";

/// Ends the run before the first model call if people have to resolve the conflict, and skips the model if git
/// merges everything by now.
pub(in crate::run) const LIMITS: PhaseSpec = PhaseSpec::without_dialog(check_limits);

fn check_limits(state: &PlannerRunState) -> RunStep {
    let (Some(conflict), Some(workspace)) = (
        state.request().and_then(|request| request.about.conflict()),
        state.source().open_workspace(),
    ) else {
        return RunStep::Over;
    };
    let files = &workspace.conflicts;
    if let Some(why) = exceeded_limit(files) {
        let paths = files.iter().map(|file| file.path.clone()).take(NAMED_FILES);
        return RunStep::Close(StopReason::ConflictLeft {
            why,
            files: paths.collect(),
        });
    }
    // After a return, the model has to repair what git merged.
    let is_done = state.outputs().handover().is_some() || !state.outputs().returns().is_empty();
    if !files.is_empty() || is_done {
        return RunStep::Over;
    }
    let handover = WorkHandover {
        kind: MERGE_KIND.to_owned(),
        title: format!("merge {}", conflict.base_branch),
        summary: format!("Git merges {} without a conflict.", conflict.base_branch),
        ..WorkHandover::default()
    };
    let exit = WorkExit::Finished(Box::new(handover));
    PhaseOutput::Work { exit }.into()
}

/// Returns the reason that people have to resolve these conflicts.
fn exceeded_limit(files: &[ConflictFile]) -> Option<ConflictLeft> {
    if files.iter().any(|file| file.kind.is_unreadable()) {
        return Some(ConflictLeft::Unreadable);
    }
    let hunks = files
        .iter()
        .fold(0, |sum: u32, file| sum.saturating_add(file.hunks));
    let bytes = files
        .iter()
        .fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
    (files.len() > MOST_FILES || hunks > MOST_HUNKS || bytes > MOST_BYTES).then_some(ConflictLeft::TooLarge)
}

/// Returns the step for hunks that the result lacks without a reason, and for leftover markers; `None` if the merge
/// keeps everything.
pub(super) fn lost_step(state: &PlannerRunState, change: Option<&ChangeReport>) -> Option<RunStep> {
    state.request()?.about.conflict()?;
    let (change, handover) = (change?, state.outputs().handover()?);
    let hunks = list_unnamed_hunks(&change.lost_hunks, &handover.dropped);
    if hunks.is_empty() && change.marked_files.is_empty() {
        return None;
    }
    if let Some(reason) = state.outputs().cut_short() {
        return Some(RunStep::Close(reason.clone()));
    }
    let mut files: Vec<String> = hunks.iter().map(|hunk| hunk.path.clone()).collect();
    files.extend(change.marked_files.iter().cloned());
    files.sort();
    files.dedup();
    files.truncate(NAMED_FILES);
    let why = ReturnReason::HunksLost {
        hunks,
        marked_files: change.marked_files.clone(),
    };
    if can_work(state) && count_returns(state, &why) < MOST_RETURNS {
        return Some(go_back_to_work(state, why));
    }
    Some(RunStep::Close(StopReason::ConflictLeft {
        why: ConflictLeft::HunksLost,
        files,
    }))
}

#[cfg(test)]
mod tests {
    use domain::ConflictKind;

    use super::*;

    fn build_file(kind: ConflictKind, hunks: u32, bytes: u64) -> ConflictFile {
        ConflictFile {
            path: "a.py".to_owned(),
            kind,
            bytes,
            hunks,
        }
    }

    #[test]
    fn limits_leave_conflict_to_people() {
        let text = || build_file(ConflictKind::Content, 1, 100);
        let rows = [
            (vec![], None),
            (vec![text(); MOST_FILES], None),
            (vec![text(); MOST_FILES + 1], Some(ConflictLeft::TooLarge)),
            (vec![build_file(ConflictKind::Content, MOST_HUNKS, 100)], None),
            (
                vec![build_file(ConflictKind::Content, MOST_HUNKS + 1, 100)],
                Some(ConflictLeft::TooLarge),
            ),
            (vec![build_file(ConflictKind::BothAdded, 1, MOST_BYTES)], None),
            (
                vec![build_file(ConflictKind::BothAdded, 1, MOST_BYTES + 1)],
                Some(ConflictLeft::TooLarge),
            ),
            (vec![build_file(ConflictKind::RemovedAndChanged, 0, 0)], None),
            (
                vec![text(), build_file(ConflictKind::Binary, 0, 0)],
                Some(ConflictLeft::Unreadable),
            ),
            (
                vec![build_file(ConflictKind::Submodule, 0, 0)],
                Some(ConflictLeft::Unreadable),
            ),
        ];
        for (files, left) in rows {
            assert_eq!(exceeded_limit(&files), left, "{files:?}");
        }
    }
}
