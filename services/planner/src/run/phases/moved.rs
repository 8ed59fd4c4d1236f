//! Handles foreign pushes to the branch that the run works on.

use domain::{About, Refusal, StopReason};

use crate::run::machine::{RunState, Step};

// Maximum of restarts after foreign pushes.
const MOST_BEGINNINGS: u32 = 3;

/// Returns the step that ends the run instead of a restart.
///
/// Failed checks belong to a commit that is no longer the head: the checks of the new head decide. A branch
/// that changes again and again is left to its authors.
pub(in crate::run) fn moved(state: &RunState) -> Option<Step> {
    let request = state.request().filter(|_| state.moves > 0)?;
    let (ours, head) = request.about.pull_request()?;
    if matches!(request.about, About::Checks(_)) {
        return Some(Step::Finish(StopReason::Superseded));
    }
    let refusal = || Refusal::BranchMoved {
        branch: ours.branch.clone(),
        head: Some(head.clone()),
    };
    (state.moves > MOST_BEGINNINGS).then(|| Step::Close(StopReason::ReportRefused(refusal())))
}
