//! Job-independent machine: the state that a journal folds into, its transitions, and the steps.

mod action;
mod budget;
mod context;
pub(crate) mod conversation;
mod input;
mod repetition;
mod spec;
mod state;
mod step;

pub(crate) use action::{ArgumentProblem, AttachmentPart, AttachmentRead, CallAnswer, RunAction};
pub(crate) use budget::{
    BudgetAllowance, has_exits_only, is_late_call, spent_reason, ticket_budget_refusal, turn_limit,
};
pub(crate) use context::{counted_length, full_reason, idle_repetition, is_context_full};
pub(crate) use conversation::{ConversationItem, ConversationView, ReplyNudge, TurnDigest, list_attachments};
pub(crate) use input::RunInput;
pub(crate) use repetition::final_repetition;
pub(crate) use spec::{DialogSpec, JobSpec, PhaseSpec, PlannerTool, ReplyForm, RunStep};
pub(in crate::run) use state::COMMIT_CHANGES;
#[cfg(test)]
pub(crate) use state::MAX_STRANGER_COMMENTS;
pub(crate) use state::{
    CallResult, CommandTool, DIFF, DialogTurn, IllegalFact, PhaseDialog, PhaseResult, PlannerRunState,
    PlannerWorkspaceState, ReceivedNews, ReportState, RetryWait, RunChecks, TurnCall, estimate_tokens,
    hash_text, is_work_result,
};
pub(crate) use step::{
    CallPlace, answer_call, await_report, find_open_place, finish_refused, list_following_reads, park_run,
    read_attachment, record_turn, report_end, report_once, request_report, resume_call, run_mcp_tool,
    run_tool, start_own_call,
};
