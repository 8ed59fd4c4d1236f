//! The way back to the work, which is not gone for ever.

use domain::{Fact, Return, StopReason};

use crate::run::machine::{Action, RunState, Step};

/// How often people may have a change revised.
const MOST_REVISIONS: usize = 3;
/// How often the model may try again for one other reason.
const MOST_TRIES: usize = 3;

/// Back to the work, or the end when that was tried often enough.
pub(super) fn back(state: &RunState, why: Return) -> Step {
    let tried = tries(state, &why);
    match &why {
        Return::Feedback { .. } if tried >= MOST_REVISIONS => Step::Close(StopReason::RevisionLimit {
            revisions: u32::try_from(tried).unwrap_or(u32::MAX),
        }),
        Return::Refused { detail } if tried >= MOST_TRIES => Step::Close(StopReason::ReportRefused {
            detail: detail.clone(),
        }),
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

/// How often the run went back for such a reason.
pub(super) fn tries(state: &RunState, why: &Return) -> usize {
    let is_same = |known: &Return| std::mem::discriminant(known) == std::mem::discriminant(why);
    state.returns.iter().filter(|known| is_same(&known.why)).count()
}
