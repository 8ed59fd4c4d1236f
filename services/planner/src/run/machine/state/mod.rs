//! State of a run: a sum of parts, each with the fields of one subject, their transitions and their restart.
//!
//! Only the transitions of the sum change the parts, so the steps of a run can ask them and nothing else.

mod budget;
mod conversation;
mod delivery;
mod dialog;
mod lifecycle;
mod mcp;
mod outputs;
mod run_state;
mod shortening;
mod source;
mod transitions;
mod verification;
mod work;

use domain::RunId;

#[cfg(test)]
pub(crate) use conversation::MAX_STRANGER_COMMENTS;
pub(crate) use conversation::ReceivedNews;
pub(crate) use delivery::{ReportState, is_work_result};
pub(crate) use dialog::{CallResult, DIFF, DialogTurn, PhaseDialog, TurnCall, estimate_tokens};
pub(super) use dialog::{
    clearable_tokens, conversation_length, first_turns_tokens, results_tokens, turn_tokens,
};
pub(crate) use lifecycle::{RetryWait, hash_text};
pub(crate) use mcp::CommandTool;
pub(crate) use outputs::PhaseResult;
pub(crate) use run_state::PlannerRunState;
pub(super) use shortening::{PendingSummary, TurnSummary};
pub(crate) use verification::RunChecks;
pub(in crate::run) use work::COMMIT_CHANGES;
pub(crate) use work::PlannerWorkspaceState;

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
type ApplyResult = Result<(), &'static str>;

fn require_legal(condition: bool, problem: &'static str) -> ApplyResult {
    if condition { Ok(()) } else { Err(problem) }
}
