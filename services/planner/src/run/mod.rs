//! The run: pure data and decisions, without I/O, clock or runtime.

mod apply;
mod decide;
pub(crate) mod retry;
mod state;
mod tools;
mod transcript;
mod triage;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use apply::IllegalFact;
pub(crate) use decide::{Action, decide};
pub(crate) use state::{RunState, job_of};
pub(crate) use transcript::{Message, Transcript, transcript};
