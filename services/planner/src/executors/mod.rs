//! Executors: discovery, choice of one, and calls to it.

mod call;
mod checks;
mod client;
mod dial;
mod directory;
mod inspect;
mod pool;
mod seeds;
mod seen;
mod span_check;
mod span_questions;
mod span_relay;
mod watch;

pub(crate) use call::{CallError, Caller};
pub(crate) use client::{Executors, commit};
pub(crate) use dial::Dial;
pub(crate) use directory::HeldWorkspace;
pub use inspect::inspect_pools;
pub(crate) use pool::{OpenError, Restore};
pub(crate) use seeds::{Candidate, SeedQuery, Seeds};
