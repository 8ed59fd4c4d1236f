//! Returns to the work phase, at most N times.

use domain::{Fact, Phase, Return, StopReason};

use crate::run::machine::{Action, RunState, Step, has_exits_only};

// Maximum of revisions that users may request.
const MOST_REVISIONS: usize = 3;
// Maximum of attempts by the model for each other reason.
const MOST_TRIES: usize = 3;

/// Returns to the work, or ends the run after too many attempts, or when the work ended early and cannot
/// continue.
pub(super) fn back(state: &RunState, why: Return) -> Step {
    let tried = tries(state, &why);
    if let (Some(reason), Return::Feedback { .. } | Return::Unkept { .. } | Return::NothingChanged) =
        (state.cut_short(), &why)
    {
        return Step::Close(reason.clone());
    }
    match &why {
        Return::Feedback { .. } | Return::Replan { .. } if tried >= MOST_REVISIONS => {
            Step::Close(StopReason::RevisionLimit {
                revisions: u32::try_from(tried).unwrap_or(u32::MAX),
            })
        }
        Return::Refused(refusal) if tried >= MOST_TRIES || state.cut_short().is_some() => {
            Step::Close(StopReason::ReportRefused(refusal.clone()))
        }
        Return::Unkept { reason } if tried >= MOST_TRIES => Step::Close(StopReason::Unfinished {
            summary: String::new(),
            unsaved: vec![reason.clone()],
        }),
        Return::NothingChanged if tried >= MOST_TRIES => Step::Close(StopReason::NoChange {
            summary: state
                .handover()
                .map(|said| said.summary.clone())
                .unwrap_or_default(),
        }),
        _ => Action::Record(Fact::Returned { why }).into(),
    }
}

/// Returns true if the model can still act on a return.
pub(super) fn can_work(state: &RunState) -> bool {
    state.cut_short().is_none() && !has_exits_only(state, Phase::Work)
}

/// Returns the number of returns for this kind of reason.
pub(super) fn tries(state: &RunState, why: &Return) -> usize {
    // Each kind of reason has a limit independent of the others.
    let is_same = |known: &Return| std::mem::discriminant(known) == std::mem::discriminant(why);
    state.returns.iter().filter(|known| is_same(&known.why)).count()
}
