//! Pools of executors, as planners observe them.

mod fold;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

pub use fold::{ExecutorPool, PoolFreshness};

use crate::{
    identity::time::Timestamp,
    journal::{kind::RecordKind, record_format::StoredRecord},
    work::workspace::SandboxLevel,
};

/// One planner's observation of one pool of executors.
///
/// Executors have no access to the queue, so planners write the records, one per pool and planner, at an
/// interval. An old record means that its planner stopped; it says nothing about the executors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRecord {
    /// Name of the pool.
    pub pool: String,
    /// The observing process: name of its machine with a number.
    pub planner: String,
    /// Time of the record.
    pub at: Timestamp,
    /// At most [`PoolRecord::MOST`] executors, ready ones last.
    pub executors: Vec<ObservedExecutor>,
    /// Totals of the executors beyond the list.
    #[serde(default)]
    pub left_out: UnlistedExecutors,
    /// Host names of the pool's settings that resolve to no address.
    #[serde(default)]
    pub unresolved: Vec<String>,
}

impl StoredRecord for PoolRecord {
    const KIND: RecordKind = RecordKind::Control;
}

impl PoolRecord {
    /// Maximum number of listed executors.
    pub const MOST: usize = 500;
    /// Interval in which a planner writes an unchanged record, in milliseconds.
    pub const EVERY_MS: u64 = 10_000;
    /// Maximum age of a current record in milliseconds: its planner may miss three writes of
    /// [`PoolRecord::EVERY_MS`].
    pub const FRESH_MS: u64 = 35_000;

    /// Returns true when the record describes this instant.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        // The distance counts in both directions: a planner whose clock is ahead would otherwise seem alive
        // after its end.
        let distance = self.at.since(now).max(now.since(self.at));
        distance.as_millis() <= u128::from(Self::FRESH_MS)
    }
}

/// Totals of the executors beyond the list of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnlistedExecutors {
    /// Number of these executors.
    pub executors: u32,
    /// Number of slots that a new run may take.
    pub free: u32,
    /// Number of all slots.
    pub total: u32,
    /// Number of open workspaces.
    pub held: u32,
}

impl UnlistedExecutors {
    /// Adds one executor to the totals.
    #[must_use]
    pub const fn with(self, one: &ObservedExecutor) -> Self {
        Self {
            executors: self.executors.saturating_add(1),
            free: self.free.saturating_add(one.free),
            total: self.total.saturating_add(one.total),
            held: self.held.saturating_add(one.held),
        }
    }
}

/// A planner's observation of an executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedExecutor {
    /// Address at which the planner reaches it.
    pub address: String,
    /// State that decides about new work.
    pub state: ExecutorState,
    /// Reason why it accepts no work; empty: it accepts work.
    #[serde(default)]
    pub why: String,
    /// Number of slots that a new run may take.
    pub free: u32,
    /// Number of all slots.
    pub total: u32,
    /// Number of open workspaces.
    pub held: u32,
    /// Release, sandbox and programs; absent: it has never reported them.
    #[serde(default)]
    pub make: Option<ExecutorMake>,
    /// Time of its last answer; absent: never.
    #[serde(default)]
    pub heard_at: Option<Timestamp>,
    /// Time of its start; absent: not reported.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
}

/// State of an executor. The order is that of the listing, from bad to good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ExecutorState {
    /// The executor does not respond.
    Silent,
    /// The executor responds and is not ready.
    Unready,
    /// The executor is about to stop: open workspaces may continue.
    Draining,
    /// The executor accepts work while it has a free slot.
    Ready,
}

impl ExecutorState {
    /// The spelling in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Release, sandbox and programs of an executor. Executors of one pool should be alike, because a run may
/// start on any of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutorMake {
    /// Its release; empty: an earlier release that does not report it.
    pub version: String,
    /// Sandbox level of its commands.
    pub sandbox: SandboxLevel,
    /// Name of the operating system in which commands run; may be empty.
    pub system: String,
    /// Programs of common toolchains that commands find, in a fixed order.
    pub programs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record_format::decode_stored_record;

    #[test]
    fn pool_record_is_fresh_for_35_seconds() {
        let at = Timestamp::from_unix_ms(1_764_000_000_000);
        let record = PoolRecord {
            at,
            ..PoolRecord::default()
        };
        let is_fresh = |ms: i64| record.is_fresh(at.plus_ms(ms));
        assert!(is_fresh(0) && is_fresh(35_000) && is_fresh(-35_000));
        assert!(!is_fresh(35_001), "its writer has gone");
        assert!(!is_fresh(-35_001), "a clock that is ahead makes nothing alive");
    }

    #[test]
    fn pool_record_of_older_planner_is_readable() {
        let text = r#"{"version":1,"pool":"default","planner":"a.1","at":1764000000000,"executors":[
            {"address":"http://a:1","state":"ready","free":1,"total":2,"held":1}]}"#;
        let record: PoolRecord = decode_stored_record(text.as_bytes()).unwrap();
        assert_eq!(record.executors[0].make, None);
        assert_eq!(record.left_out, UnlistedExecutors::default());
    }
}
