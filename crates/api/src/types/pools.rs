//! Answers about pools of executors.

use domain::{ExecutorState, PoolFreshness};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The pools of executors, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolsView {
    /// The pools that planners report or rules name.
    pub pools: Vec<PoolView>,
}

/// A pool of executors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolView {
    /// Name of the pool, as in `executor.pool` of the rules.
    pub name: String,
    /// Freshness: `current`, `old` when no planner reports the pool now, or `unknown` when none has
    /// within a day.
    #[schema(value_type = String)]
    pub news: PoolFreshness,
    /// Time of the latest report of a planner.
    pub seen_at: Option<String>,
    /// Number of planners that report the pool now.
    pub planners: u32,
    /// Number of executors in any state.
    pub executors: u32,
    /// Number of executors that accept work; 0 unless the information is current.
    pub ready: u32,
    /// Number of slots that a new run may take.
    pub free: u32,
    /// Number of slots of executors that respond.
    pub total: u32,
    /// Number of open workspaces.
    pub held: u32,
    /// Number of runs that wait for a slot.
    pub waiting: u32,
    /// Start of the longest wait.
    pub waiting_since: Option<String>,
    /// Kinds of executors, each once. A pool with more than one is mixed: the same run may have different
    /// results.
    pub makes: Vec<MakeView>,
    /// Problems of the pool, described for operators.
    pub problems: Vec<String>,
    /// The executors, ready ones last. Empty for a limited token.
    pub members: Vec<ExecutorView>,
}

impl PoolView {
    /// Returns true when the executors of the pool differ in release, sandbox or programs.
    pub fn is_mixed(&self) -> bool {
        self.makes.len() > 1
    }
}

/// Release, sandbox and programs of some executors of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MakeView {
    /// Their release; empty: an earlier release that does not report it.
    pub version: String,
    /// Sandbox level of commands, `L0` to `L3`.
    pub sandbox: String,
    /// Name of the operating system in which commands run; may be empty.
    pub system: String,
    /// Programs of common toolchains that commands find.
    pub programs: Vec<String>,
    /// Number of executors of this kind.
    pub executors: u32,
}

/// An executor of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutorView {
    /// Address at which planners reach it.
    pub address: String,
    /// State: `ready`, `draining`, `unready` (not ready), or `silent` (no response).
    #[schema(value_type = String)]
    pub state: ExecutorState,
    /// Reason why it accepts no work; empty: it accepts work or drains.
    pub why: String,
    /// Number of slots that a new run may take.
    pub free: u32,
    /// Number of all slots.
    pub total: u32,
    /// Number of open workspaces.
    pub held: u32,
    /// Index in the `makes` of the pool; absent: it has never reported them.
    pub make: Option<u32>,
    /// Time of its last answer; absent: never.
    pub heard_at: Option<String>,
    /// Time of its start; absent: not reported.
    pub started_at: Option<String>,
}
