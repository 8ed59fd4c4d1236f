//! Executors: discovery, choice of one, and calls to it.

mod call;
mod checks;
mod client;
mod connector;
mod directory;
mod pool;
mod pool_inspection;
mod pool_records;
mod seeds;
mod span_check;
mod span_questions;
mod span_relay;
mod status_watch;

pub(crate) use call::{CallError, RunCaller};
pub(crate) use client::{ExecutorFleet, parse_commit_id};
pub(crate) use connector::ExecutorConnector;
pub(crate) use directory::HeldWorkspace;
pub(crate) use pool::{OpenError, PlannerSnapshotRestore};
pub use pool_inspection::inspect_pools;
pub(crate) use seeds::{CodeSeeds, SeedCandidate, SeedQuery};
