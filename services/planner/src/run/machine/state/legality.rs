//! Legality of a journal entry after the previous ones.

use domain::RunId;

/// Journal entry that is illegal after the previous ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {position} of the journal of {run}, {fact}, cannot be there: {problem}")]
pub(crate) struct IllegalFact {
    pub(crate) run: RunId,
    pub(crate) position: u64,
    pub(crate) fact: &'static str,
    pub(crate) problem: &'static str,
}

/// Outcome of a transition, with the problem of an illegal fact.
pub(super) type ApplyResult = Result<(), &'static str>;

pub(super) fn require_legal(condition: bool, problem: &'static str) -> ApplyResult {
    if condition { Ok(()) } else { Err(problem) }
}
