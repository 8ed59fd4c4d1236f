//! Handles foreign pushes to the branch that the run works on.

use domain::{JobSubject, OutboundRefusal, StopReason};

use crate::run::machine::{PlannerRunState, RunStep};

// Maximum of restarts after foreign pushes.
const MOST_BEGINNINGS: u32 = 3;

/// Returns the step that ends the run instead of a restart.
///
/// Failed checks belong to a commit that is no longer the head: the checks of the new head decide. A branch
/// that changes again and again is left to its authors.
pub(in crate::run) fn end_after_moves(state: &PlannerRunState) -> Option<RunStep> {
    let request = state.request().filter(|_| state.lifecycle().moves() > 0)?;
    let (ours, head) = request.about.pull_request()?;
    if matches!(request.about, JobSubject::Checks(_)) {
        return Some(RunStep::Finish(StopReason::Superseded));
    }
    let refusal = || OutboundRefusal::BranchMoved {
        branch: ours.branch.clone(),
        head: Some(head.clone()),
    };
    (state.lifecycle().moves() > MOST_BEGINNINGS)
        .then(|| RunStep::Close(StopReason::ReportRefused(refusal())))
}
