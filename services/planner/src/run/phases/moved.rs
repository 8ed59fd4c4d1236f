//! Somebody pushed to the branch that the run works on.

use domain::{About, Refusal, StopReason};

use crate::run::machine::{RunState, Step};

/// How often the work begins again on what others pushed.
const MOST_BEGINNINGS: u32 = 3;

/// What ends the run instead of a new beginning. Red checks were those of a commit that is no head any more: the checks of the
/// new one decide what follows. And a branch that never stands still is left to the people who push there.
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
