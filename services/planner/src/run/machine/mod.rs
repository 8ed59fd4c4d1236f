//! Job-independent machine: the state that a journal folds into, its transitions, and the steps.

mod best_state;
mod budget;
mod context;
pub(crate) mod conversation;
mod dialog;
mod head_move;
mod input;
mod outputs;
mod packs;
mod proof;
mod repetition;
mod reports;
mod retry;
mod shortening;
mod spec;
mod state;
mod step;
mod transitions;
mod turn_digest;
mod turns;
mod work;

pub(crate) use budget::{
    BudgetAllowance, has_exits_only, is_late_call, spent_reason, ticket_room_refusal, turn_limit,
};
pub(crate) use context::{counted_length, estimate_tokens, full_reason, idle_repetition, is_context_full};
pub(crate) use conversation::{ConversationItem, ConversationView, ReplyNudge};
pub(crate) use dialog::{CallResult, DialogTurn, ModelCallFailure, PhaseDialog, TurnCall, TurnCallState};
pub(crate) use input::RunInput;
pub(crate) use outputs::DIFF;
pub(crate) use proof::RunChecks;
pub(crate) use repetition::final_repetition;
pub(crate) use retry::{RetryWait, hash_text};
pub(crate) use spec::{DialogSpec, JobSpec, PhaseSpec, PlannerTool, ReplyForm, RunStep};
#[cfg(test)]
pub(crate) use state::MAX_STRANGER_COMMENTS;
pub(crate) use state::{PlannerRunState, ReceivedNews, ReportState};
pub(crate) use step::{ArgumentProblem, CallAnswer, RunAction};
pub(crate) use step::{
    answer_call, await_report, park_run, record_turn, report_failed, request_report, resume_call, run_tool,
    start_own_call,
};
pub(crate) use transitions::IllegalFact;
pub(crate) use turn_digest::TurnDigest;
pub(in crate::run) use work::COMMIT_CHANGES;
pub(crate) use work::PlannerWorkspaceState;
