//! State of a run: a sum of parts, each with the fields of one subject, their transitions and their restart.
//!
//! Only the transitions of the sum change the parts, so the steps of a run can ask them and nothing else.

mod budget;
mod checks;
mod context_length;
mod conversation;
mod delivery;
mod dialog;
mod gate;
mod legality;
mod lifecycle;
mod news;
mod outputs;
mod own_calls;
mod restart;
mod run_state;
mod shortening;
mod source;
mod transitions;
mod verification;
mod work;

pub(crate) use checks::RunChecks;
pub(crate) use context_length::estimate_tokens;
pub(super) use context_length::{
    clearable_tokens, conversation_length, first_turns_tokens, results_tokens, turn_tokens,
};
pub(crate) use delivery::{ReportState, is_work_result};
pub(crate) use dialog::{CallResult, DialogTurn, PhaseDialog, TurnCall, TurnCallState};
pub(crate) use legality::IllegalFact;
pub(crate) use lifecycle::{RetryWait, hash_text};
#[cfg(test)]
pub(crate) use news::MAX_STRANGER_COMMENTS;
pub(crate) use news::ReceivedNews;
pub(crate) use own_calls::DIFF;
pub(crate) use run_state::PlannerRunState;
pub(super) use shortening::{PendingSummary, TurnSummary};
pub(in crate::run) use work::COMMIT_CHANGES;
pub(crate) use work::PlannerWorkspaceState;
