//! Merged view of all planners on a pool of executors.

use std::collections::{BTreeMap, BTreeSet};

use super::{ExecutorMake, ExecutorState, ObservedExecutor, PoolRecord, UnlistedExecutors};
use crate::identity::time::Timestamp;

/// Freshness of the information about a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolFreshness {
    /// At least one planner reports the pool now.
    Current,
    /// No planner reports the pool now; the information is that of the last one. No executor is known to accept work.
    Old,
    /// No planner has reported the pool within a day.
    #[default]
    Unknown,
}

/// A pool, merged from the records of all planners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutorPool {
    /// Freshness of the information.
    pub news: PoolFreshness,
    /// Time of the latest record.
    pub at: Option<Timestamp>,
    /// Number of planners that report the pool now.
    pub planners: u32,
    /// Each executor once, in ascending order of its state, so that ready executors are last.
    pub executors: Vec<ObservedExecutor>,
    /// Totals of the executors beyond the list.
    pub left_out: UnlistedExecutors,
    /// Host names of the settings that resolve to no address.
    pub unresolved: BTreeSet<String>,
    /// Number of executors that only some of the planners can reach.
    pub half_heard: u32,
}

impl ExecutorPool {
    /// Merges the records of one pool at an instant.
    pub fn of(records: &[PoolRecord], now: Timestamp) -> Self {
        let fresh: Vec<&PoolRecord> = records.iter().filter(|record| record.is_fresh(now)).collect();
        let Some(last) = records.iter().max_by_key(|record| record.at) else {
            return Self::default();
        };
        if fresh.is_empty() {
            return Self::once(last);
        }
        let mut best: BTreeMap<&str, (&ObservedExecutor, usize)> = BTreeMap::new();
        for one in fresh.iter().flat_map(|record| &record.executors) {
            let heard = usize::from(one.state != ExecutorState::Silent);
            let (known, times) = best.entry(&one.address).or_insert((one, 0));
            *times += heard;
            // The best observation counts, because the network of a single planner may fail.
            if (one.state, one.heard_at) > (known.state, known.heard_at) {
                *known = one;
            }
        }
        let is_half = |heard: usize| heard > 0 && heard < fresh.len();
        let half_heard = best.values().filter(|(_, heard)| is_half(*heard)).count();
        // Planners observe the same executors, so a sum over their records would count executors repeatedly.
        let left_out = fresh
            .iter()
            .map(|record| record.left_out)
            .max_by_key(|left_out| left_out.executors);
        let mut executors: Vec<_> = best.into_values().map(|(one, _)| one.clone()).collect();
        executors.sort_by(|a, b| (a.state, &a.address).cmp(&(b.state, &b.address)));
        Self {
            news: PoolFreshness::Current,
            at: Some(last.at),
            planners: saturate_count(fresh.len()),
            executors,
            left_out: left_out.unwrap_or_default(),
            unresolved: fresh
                .iter()
                .flat_map(|record| record.unresolved.iter().cloned())
                .collect(),
            half_heard: saturate_count(half_heard),
        }
    }

    /// Returns the last observation of a planner that stopped reporting, with every executor as silent.
    fn once(last: &PoolRecord) -> Self {
        let unheard = |one: &ObservedExecutor| ObservedExecutor {
            state: ExecutorState::Silent,
            why: "no planner reports it any more".to_owned(),
            free: 0,
            total: 0,
            held: 0,
            heard_at: match one.state {
                ExecutorState::Silent => one.heard_at,
                ExecutorState::Unready | ExecutorState::Draining | ExecutorState::Ready => Some(last.at),
            },
            ..one.clone()
        };
        Self {
            news: PoolFreshness::Old,
            at: Some(last.at),
            executors: last.executors.iter().map(unheard).collect(),
            left_out: UnlistedExecutors {
                executors: last.left_out.executors,
                ..UnlistedExecutors::default()
            },
            ..Self::default()
        }
    }

    /// Number of slots that a new run may take.
    pub fn free(&self) -> u32 {
        self.sum(self.left_out.free, |one| one.free)
    }

    /// Number of slots of executors that respond.
    pub fn total(&self) -> u32 {
        self.sum(self.left_out.total, |one| one.total)
    }

    /// Number of open workspaces.
    pub fn held(&self) -> u32 {
        self.sum(self.left_out.held, |one| one.held)
    }

    fn sum(&self, left_out: u32, of: fn(&ObservedExecutor) -> u32) -> u32 {
        self.executors.iter().map(of).fold(left_out, u32::saturating_add)
    }

    /// Number of executors in any state.
    pub fn count(&self) -> u32 {
        saturate_count(self.executors.len()).saturating_add(self.left_out.executors)
    }

    /// Number of executors that accept work.
    ///
    /// The list keeps the worst executors, so those beyond it are ready when a listed one is.
    pub fn ready(&self) -> u32 {
        let ready = self
            .executors
            .iter()
            .filter(|one| one.state == ExecutorState::Ready)
            .count();
        let left_out = if ready > 0 { self.left_out.executors } else { 0 };
        saturate_count(ready).saturating_add(left_out)
    }

    /// Number of executors per make. Silent executors are excluded, because they may return with another
    /// release.
    pub fn makes(&self) -> BTreeMap<ExecutorMake, u32> {
        let counts = |one: &&ObservedExecutor| {
            one.state != ExecutorState::Silent || self.news != PoolFreshness::Current
        };
        let mut makes = BTreeMap::new();
        for make in self
            .executors
            .iter()
            .filter(counts)
            .filter_map(|one| one.make.clone())
        {
            *makes.entry(make).or_default() += 1;
        }
        makes
    }
}

fn saturate_count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_764_000_000_000);

    fn build_executor(address: &str, state: ExecutorState) -> ObservedExecutor {
        let is_heard = state != ExecutorState::Silent;
        let number = |count| if is_heard { count } else { 0 };
        ObservedExecutor {
            address: address.to_owned(),
            state,
            why: String::new(),
            free: u32::from(state == ExecutorState::Ready),
            total: number(4),
            held: number(3),
            make: None,
            heard_at: (!is_heard).then(|| NOW.plus_ms(-90_000)),
            started_at: None,
        }
    }

    fn build_pool_record(age_ms: i64, executors: Vec<ObservedExecutor>) -> PoolRecord {
        PoolRecord {
            at: NOW.plus_ms(-age_ms),
            executors,
            ..PoolRecord::default()
        }
    }

    #[test]
    fn pool_record_of_stopped_planner_is_old() {
        let ready = build_executor("a", ExecutorState::Ready);
        let gone = build_pool_record(
            60_000,
            vec![ready.clone(), build_executor("b", ExecutorState::Silent)],
        );
        let pool = ExecutorPool::of(std::slice::from_ref(&gone), NOW);
        assert_eq!((pool.news, pool.planners), (PoolFreshness::Old, 0));
        assert_eq!((pool.count(), pool.ready()), (2, 0));
        assert_eq!((pool.free(), pool.total(), pool.held()), (0, 0, 0));
        let heard = Vec::from_iter(pool.executors.iter().map(|one| one.heard_at));
        assert_eq!(heard, [Some(NOW.plus_ms(-60_000)), Some(NOW.plus_ms(-90_000))]);
        let pool = ExecutorPool::of(&[gone, build_pool_record(1_000, vec![ready])], NOW);
        assert_eq!(
            (pool.news, pool.planners, pool.count()),
            (PoolFreshness::Current, 1, 1)
        );
        assert_eq!((pool.free(), pool.total(), pool.held()), (1, 4, 3));
        assert_eq!(ExecutorPool::of(&[], NOW), ExecutorPool::default());
    }

    #[test]
    fn reachable_executor_counts_once_per_pool() {
        let reaches = build_pool_record(9_000, vec![build_executor("a", ExecutorState::Ready)]);
        let does_not = build_pool_record(0, vec![build_executor("a", ExecutorState::Silent)]);
        for records in [[reaches.clone(), does_not.clone()], [does_not, reaches]] {
            let pool = ExecutorPool::of(&records, NOW);
            assert_eq!((pool.planners, pool.count(), pool.half_heard), (2, 1, 1));
            assert_eq!((pool.free(), pool.held()), (1, 3));
        }
    }

    #[test]
    fn pool_sums_include_unlisted_executors() {
        let record = PoolRecord {
            left_out: UnlistedExecutors {
                executors: 2,
                free: 5,
                total: 8,
                held: 3,
            },
            ..build_pool_record(
                0,
                vec![
                    build_executor("a", ExecutorState::Silent),
                    build_executor("b", ExecutorState::Ready),
                ],
            )
        };
        let pool = ExecutorPool::of(&[record.clone(), record], NOW);
        assert_eq!((pool.count(), pool.ready()), (4, 3));
        assert_eq!((pool.free(), pool.total(), pool.held()), (6, 12, 6));
    }
}
