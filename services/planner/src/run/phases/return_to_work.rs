//! Returns to the work phase, at most N times.

use domain::{Fact, ReturnReason, RunPhase, StopReason};

use crate::run::machine::{PlannerRunState, RunAction, RunStep, has_exits_only};

// Maximum of revisions that users may request.
const MOST_REVISIONS: usize = 3;
// Maximum of attempts by the model for each other reason.
const MOST_TRIES: usize = 3;

/// Returns to the work, or ends the run after too many attempts, or when the work ended early and cannot
/// continue.
pub(super) fn go_back_to_work(state: &PlannerRunState, why: ReturnReason) -> RunStep {
    let tried = count_returns(state, &why);
    if let (
        Some(reason),
        ReturnReason::Feedback { .. } | ReturnReason::Unkept { .. } | ReturnReason::NothingChanged,
    ) = (state.outputs().cut_short(), &why)
    {
        return RunStep::Close(reason.clone());
    }
    match &why {
        ReturnReason::Feedback { .. } | ReturnReason::Replan { .. } if tried >= MOST_REVISIONS => {
            RunStep::Close(StopReason::RevisionLimit {
                revisions: u32::try_from(tried).unwrap_or(u32::MAX),
            })
        }
        ReturnReason::Refused(refusal) if tried >= MOST_TRIES || state.outputs().cut_short().is_some() => {
            RunStep::Close(StopReason::ReportRefused(refusal.clone()))
        }
        ReturnReason::Unkept { reason } if tried >= MOST_TRIES => RunStep::Close(StopReason::Unfinished {
            summary: String::new(),
            unsaved: vec![reason.clone()],
        }),
        ReturnReason::NothingChanged if tried >= MOST_TRIES => RunStep::Close(StopReason::NoChange {
            summary: state
                .outputs()
                .handover()
                .map(|said| said.summary.clone())
                .unwrap_or_default(),
        }),
        ReturnReason::Refused(_)
        | ReturnReason::Feedback { .. }
        | ReturnReason::Unkept { .. }
        | ReturnReason::NothingChanged
        | ReturnReason::Red { .. }
        | ReturnReason::OutOfScope { .. }
        | ReturnReason::Weakened { .. }
        | ReturnReason::Questioned { .. }
        | ReturnReason::Replan { .. }
        | ReturnReason::Reviewed { .. } => RunAction::Record(Fact::Returned { why }).into(),
    }
}

/// Returns true if the model can still act on a return.
pub(super) fn can_work(state: &PlannerRunState) -> bool {
    state.outputs().cut_short().is_none() && !has_exits_only(state, RunPhase::Work)
}

/// Returns the number of returns for this kind of reason.
pub(super) fn count_returns(state: &PlannerRunState, why: &ReturnReason) -> usize {
    // Each kind of reason has a limit independent of the others.
    let is_same = |known: &ReturnReason| std::mem::discriminant(known) == std::mem::discriminant(why);
    let returns = state.outputs().returns().iter();
    returns.filter(|known| is_same(&known.why)).count()
}
