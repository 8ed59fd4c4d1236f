//! Executors: discovery, choice of one, and calls to it.

mod channels;
mod connection;
mod directory;
mod fleet;
mod pool;
mod seeds;
mod span_check;
mod span_questions;
mod span_relay;
mod status_watch;
mod workspaces;

pub(crate) use connection::{CallError, ExecutorConnector, RunCaller};
pub(crate) use directory::HeldWorkspace;
pub(crate) use fleet::ExecutorFleet;
pub use pool::inspect_pools;
pub(crate) use pool::{MirrorWait, OpenError, OpeningCommit, PlannerSnapshotRestore};
pub(crate) use seeds::{CodeSeeds, SeedCandidate, SeedQuery};
pub(crate) use workspaces::{WorkspaceCalls, parse_commit_id};
