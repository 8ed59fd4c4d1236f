//! Records of the pools' state for other services.

use bootstrap::settings::TextList;
use domain::{PoolRecord, Timestamp, UnlistedExecutors};

use super::client::ExecutorFleet;

impl ExecutorFleet {
    /// Returns a record of each pool's current state.
    pub(crate) fn seen(&self, planner: &str, now: Timestamp) -> Vec<PoolRecord> {
        let one = |(pool, names): (&String, &TextList)| {
            let (mut executors, unresolved) = self.directory.seen(pool, names);
            // A record has a size limit; the remaining executors only count.
            let listed = executors.len().min(PoolRecord::MOST);
            let rest = executors.split_off(listed);
            let left_out = rest
                .iter()
                .fold(UnlistedExecutors::default(), UnlistedExecutors::with);
            PoolRecord {
                pool: pool.clone(),
                planner: planner.to_owned(),
                at: now,
                executors,
                left_out,
                unresolved,
            }
        };
        self.settings.pools.iter().map(one).collect()
    }
}
