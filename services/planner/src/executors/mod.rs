//! Executors: discovery, choice of one, and calls to it.

mod channels;
mod client;
mod connection;
mod directory;
mod pool;
mod seeds;
mod span_check;
mod span_questions;
mod span_relay;
mod status_watch;

pub(crate) use client::{ExecutorFleet, parse_commit_id};
pub(crate) use connection::{CallError, ExecutorConnector, RunCaller};
pub(crate) use directory::HeldWorkspace;
pub use pool::inspect_pools;
pub(crate) use pool::{OpenError, PlannerSnapshotRestore};
pub(crate) use seeds::{CodeSeeds, SeedCandidate, SeedQuery};
