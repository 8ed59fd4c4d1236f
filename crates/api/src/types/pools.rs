//! Pools of executors.

use domain::{ExecutorState, PoolNews};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The pools of executors, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolsView {
    /// Those that planners tell of, and those that rules name.
    pub pools: Vec<PoolView>,
}

/// A pool of executors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolView {
    /// Its name, as `executor.pool` of the rules has it.
    pub name: String,
    /// How recent this is: `current`, `old` when no planner tells of it any more, or `unknown` when none has within a day.
    #[schema(value_type = String)]
    pub news: PoolNews,
    /// When a planner last told of it.
    pub seen_at: Option<String>,
    /// Planners that tell of it now.
    pub planners: u32,
    /// Executors, whatever their state.
    pub executors: u32,
    /// Executors that take work; none unless the news are current.
    pub ready: u32,
    /// Slots that a new run may take.
    pub free: u32,
    /// All slots of executors that answer.
    pub total: u32,
    /// Open workspaces.
    pub held: u32,
    /// Runs that wait for a slot.
    pub waiting: u32,
    /// Since when the first of them does.
    pub waiting_since: Option<String>,
    /// What its executors are made of, each kind once: more than one is a mixed pool, where the same run may end differently.
    pub makes: Vec<MakeView>,
    /// What is wrong, in words for an operator.
    pub problems: Vec<String>,
    /// Each executor, those that take work last. Empty for a limited token.
    pub members: Vec<ExecutorView>,
}

impl PoolView {
    /// Whether a run may come to executors that differ.
    pub fn is_mixed(&self) -> bool {
        self.makes.len() > 1
    }
}

/// What some executors of a pool are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MakeView {
    /// Their release; empty: an earlier one, which does not tell.
    pub version: String,
    /// How well commands are confined, `L0` to `L3`.
    pub sandbox: String,
    /// The system that commands run on, as it calls itself; may be empty.
    pub system: String,
    /// Which programs of usual toolchains commands find there.
    pub programs: Vec<String>,
    /// How many of the pool's executors.
    pub executors: u32,
}

/// An executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutorView {
    /// Where planners reach it.
    pub address: String,
    /// `ready`, `draining`, `unready`, or `silent`: it does not answer.
    #[schema(value_type = String)]
    pub state: ExecutorState,
    /// Why it takes no work; empty: it does, or it drains.
    pub why: String,
    /// Slots that a new run may take.
    pub free: u32,
    /// All slots.
    pub total: u32,
    /// Open workspaces.
    pub held: u32,
    /// Its place among the pool's `makes`; absent: it has never told.
    pub make: Option<u32>,
    /// When it was heard last; absent: never.
    pub heard_at: Option<String>,
    /// When it started; absent: it has not told.
    pub started_at: Option<String>,
}
