//! Executors: which one to ask, and what is asked of it.

mod client;
mod inspect;
mod pool;

pub(crate) use client::{CallError, Caller, Executors, commit};
pub use inspect::inspect_pools;
pub(crate) use pool::{OpenError, Restore};
