//! The run: pure data and decisions, without I/O, clock or runtime.

mod apply;
mod decide;
mod delivery;
mod implement;
mod reports;
mod retry;
mod state;
mod step;
mod tools;
mod transcript;
mod triage;
mod work;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use apply::IllegalFact;
pub(crate) use decide::decide;
pub(crate) use retry::Retries;
pub(crate) use state::RunState;
pub(crate) use step::Action;
pub(crate) use transcript::{Message, Transcript, transcript};
