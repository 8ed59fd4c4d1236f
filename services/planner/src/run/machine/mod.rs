//! Job-independent machine: the state that a journal folds into, its transitions, and the steps.

mod apply;
mod best;
mod budget;
mod card;
mod context;
pub(crate) mod conversation;
mod dialog;
mod input;
mod moved;
mod outputs;
mod packs;
mod proof;
mod repetition;
mod reports;
mod retry;
mod shorter;
mod spec;
mod state;
mod step;
mod turns;
mod work;

pub(crate) use apply::IllegalFact;
pub(crate) use budget::{Allowance, has_exits_only, is_late, no_room, spent, turn_limit};
pub(crate) use card::Card;
pub(crate) use context::{full_reason, idle, is_full, known_length, tokens_of};
pub(crate) use conversation::{Conversation, Item, Nudge};
pub(crate) use dialog::{Call, CallResult, CallState, Dialog, ModelTrouble, Turn};
pub(crate) use input::Input;
pub(crate) use outputs::DIFF;
pub(crate) use proof::Checks;
pub(crate) use repetition::stuck;
pub(crate) use retry::{Retry, hash};
pub(crate) use spec::{DialogSpec, JobSpec, Output, PhaseSpec, Step, Tool};
#[cfg(test)]
pub(crate) use state::MAX_STRANGER_COMMENTS;
pub(crate) use state::{Heard, ReportState, RunState};
pub(crate) use step::{Action, Answer, Argument};
pub(crate) use step::{
    answer, ask, await_report, carry_on, own_call, park, record_turn, report_failed, run_tool,
};
pub(in crate::run) use work::COMMIT_CHANGES;
pub(crate) use work::Workspace;
