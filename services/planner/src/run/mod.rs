//! Run: data and decisions without I/O, clock or wording. The machine knows no job; a job is a list of
//! phases.

mod decide;
mod jobs;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the parts look up single variants of outputs and reports"
)]
mod machine;
mod phases;
mod tools;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use decide::{RetryPolicy, decide_action, next_conversation, summary_conversation};
pub(crate) use jobs::job_dialogs;
pub(crate) use machine::{
    ArgumentProblem, AttachmentPart, AttachmentRead, BudgetAllowance, CallAnswer, CallPlace, CallResult,
    CommandTool, ConversationItem, ConversationView, DialogSpec, IllegalFact, PlannerRunState, ReplyForm,
    ReplyNudge, ReportState, RunAction, TurnDigest, counted_length, estimate_tokens, find_open_place,
    list_following_reads, ticket_budget_refusal,
};
pub(crate) use phases::preparation::effort_so_far;
