//! Run: data and decisions without I/O, clock or wording. The machine knows no job; a job is a list of
//! phases.

mod decide;
mod forms;
mod jobs;
mod machine;
mod phases;
mod tools;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use decide::{Retries, conversation, decide, to_sum_up};
pub(crate) use jobs::dialogs;
pub(crate) use machine::{
    Action, Allowance, Answer, Argument, CallResult, Card, Conversation, DialogSpec, IllegalFact, Item,
    Nudge, Output, RunState, known_length, no_room, tokens_of,
};
pub(crate) use phases::forecast::effort;
