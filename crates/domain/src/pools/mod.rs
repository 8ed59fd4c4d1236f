//! Pools of executors as planners see them.

mod fold;

use serde::{Deserialize, Serialize};

pub use fold::{Pool, PoolNews};

use crate::{RecordKind, SandboxLevel, Stored, Timestamp};

/// What one planner sees of one pool of executors.
///
/// Executors reach no queue, so planners write what they hear. One record for each pool and planner, written again and again: an old one says that its writer has gone, and nothing of the executors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRecord {
    /// The pool.
    pub pool: String,
    /// The process that sees this: machine and number.
    pub planner: String,
    /// When it was written.
    pub at: Timestamp,
    /// At most [`PoolRecord::MOST`], those that work last.
    pub executors: Vec<ExecutorSeen>,
    /// Executors that are not in the list, because there are more.
    #[serde(default)]
    pub left_out: LeftOut,
    /// Names of the pool's settings that stand for no address now.
    #[serde(default)]
    pub unresolved: Vec<String>,
}

impl Stored for PoolRecord {
    const KIND: RecordKind = RecordKind::Control;
}

impl PoolRecord {
    /// As many executors are listed.
    pub const MOST: usize = 500;
    /// How often a planner writes although nothing changed.
    pub const EVERY_MS: u64 = 10_000;
    /// An older record says nothing of now: its writer missed three times, or its clock is far from ours.
    pub const FRESH_MS: u64 = 35_000;

    /// Whether the record tells of this instant.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let distance = self.at.since(now).max(now.since(self.at));
        distance.as_millis() <= u128::from(Self::FRESH_MS)
    }
}

/// Executors that are not listed, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// How many.
    pub executors: u32,
    /// Slots that a new run may take.
    pub free: u32,
    /// All slots.
    pub total: u32,
    /// Open workspaces.
    pub held: u32,
}

impl LeftOut {
    /// With one more.
    #[must_use]
    pub const fn with(self, one: &ExecutorSeen) -> Self {
        Self {
            executors: self.executors.saturating_add(1),
            free: self.free.saturating_add(one.free),
            total: self.total.saturating_add(one.total),
            held: self.held.saturating_add(one.held),
        }
    }
}

/// An executor as a planner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorSeen {
    /// Where the planner reaches it.
    pub address: String,
    /// Whether it takes work.
    pub state: ExecutorState,
    /// Why it does not; empty: it does.
    #[serde(default)]
    pub why: String,
    /// Slots that a new run may take.
    pub free: u32,
    /// All slots.
    pub total: u32,
    /// Open workspaces.
    pub held: u32,
    /// What it is made of; absent: it has never told.
    #[serde(default)]
    pub make: Option<ExecutorMake>,
    /// When it was heard last; absent: never.
    #[serde(default)]
    pub heard_at: Option<Timestamp>,
    /// When it started; absent: it has not told.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
}

/// Whether an executor takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorState {
    /// It does not answer.
    Silent,
    /// It answers, and opens nothing.
    Unready,
    /// It is about to stop: what is open may go on.
    Draining,
    /// It takes work as long as it has a free slot.
    Ready,
}

impl ExecutorState {
    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Unready => "unready",
            Self::Draining => "draining",
            Self::Ready => "ready",
        }
    }
}

/// What an executor is made of. Those of one pool should be alike: a run may come to any of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutorMake {
    /// Its release; empty: an earlier one that does not tell.
    pub version: String,
    /// How well its commands are confined.
    pub sandbox: SandboxLevel,
    /// The system that commands run on, as it calls itself; may be empty.
    pub system: String,
    /// Which programs of usual toolchains commands find there, in their order.
    pub programs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_of_now_for_three_missed_writes_and_of_no_later_or_far_earlier_instant() {
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
    fn a_record_of_a_planner_that_knows_less_is_read() {
        let text = r#"{"version":1,"pool":"default","planner":"a.1","at":1764000000000,"executors":[
            {"address":"http://a:1","state":"ready","free":1,"total":2,"held":1}]}"#;
        let record: PoolRecord = crate::stored::decode(text.as_bytes()).unwrap();
        assert_eq!(record.executors[0].make, None);
        assert_eq!(record.left_out, LeftOut::default());
    }
}
