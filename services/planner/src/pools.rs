//! Executor pools as other services see them: records of this planner's view, metrics of the view of all
//! planners, and `GET /scale`.
//!
//! `GET /scale` has the number of slots that each pool needs, for an autoscaler that reads JSON.
//! Every planner reports all runs, not only its own: open workspaces come from the records of all planners,
//! and a pool has one queue. So all planners return the same answer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Json, Router, routing::get};
use domain::{ExecutorPool, PoolRecord, SlotQueue, cause::format_error_chain};
use queue::{KeyValueBucket, Queue, RecordKey, TableRevision, TypedTable};
use serde::Serialize;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::executors::ExecutorFleet;
use crate::telemetry::{self, PoolFigures, PoolSlots, last_slots};

// Pause between two rounds: no record is written more often, however much changes.
const SHORTEST: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(PoolRecord::EVERY_MS);

/// Keeps one record for each pool in the planner's settings.
pub(crate) struct PoolKeeper {
    table: TypedTable<PoolRecord>,
    queues: TypedTable<SlotQueue>,
    executors: Arc<ExecutorFleet>,
    planner: String,
    written: BTreeMap<String, (TableRevision, PoolRecord)>,
}

impl PoolKeeper {
    pub(crate) fn new(queue: &Queue, executors: Arc<ExecutorFleet>) -> Self {
        Self {
            table: queue.table(KeyValueBucket::Pools),
            queues: queue.table(KeyValueBucket::Slots),
            executors,
            planner: bootstrap::name_process_instance(),
            written: BTreeMap::new(),
        }
    }

    /// Writes records and exports metrics until shutdown. The last records stay and expire.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        // One log line is enough while the failure lasts.
        let mut is_in_trouble = false;
        loop {
            let round = self.round().await;
            if let Some(error) = round.as_ref().err().filter(|_| !is_in_trouble) {
                tracing::warn!(error = %format_error_chain(error), "what is seen of the pools could not be written down");
            }
            is_in_trouble = round.is_err();
            if shutdown.run_until_cancelled(sleep(SHORTEST)).await.is_none() {
                return;
            }
        }
    }

    async fn round(&mut self) -> Result<(), queue::Error> {
        self.write().await?;
        telemetry::record_slots(self.measured().await?);
        Ok(())
    }

    /// Returns the figures for autoscalers and alerts, from the same records of all planners that users
    /// see.
    async fn measured(&self) -> Result<Vec<PoolFigures>, queue::Error> {
        let now = bootstrap::read_wall_clock();
        let records: Vec<PoolRecord> = self
            .table
            .list()
            .await?
            .into_iter()
            .map(|(_, record)| record)
            .collect();
        let mut measured = Vec::new();
        for name in self.written.keys() {
            // Waiting runs are counted from the queue, which outlives every planner.
            let waiting = self.queues.get(name).await?.map(|(queue, _)| queue.waiting.len());
            let of_pool: Vec<PoolRecord> = records
                .iter()
                .filter(|record| record.pool == *name)
                .cloned()
                .collect();
            let pool = ExecutorPool::of(&of_pool, now);
            let slots = PoolSlots {
                free: pool.free(),
                total: pool.total(),
                held: pool.held(),
            };
            measured.push(PoolFigures {
                pool: name.clone(),
                slots,
                waiting: waiting.unwrap_or_default() as u64,
            });
        }
        Ok(measured)
    }

    async fn write(&mut self) -> Result<(), queue::Error> {
        for record in self.executors.seen(&self.planner, bootstrap::read_wall_clock()) {
            let known = self.written.get(&record.pool);
            if known.is_some_and(|(_, known)| is_current(known, &record)) {
                continue;
            }
            let key = RecordKey::pool(&record.pool, &self.planner);
            let last = known.map(|(revision, _)| *revision);
            let revision = match self.table.put(key.clone(), &record, last).await {
                // The record has expired, or an earlier process with this planner's name wrote it.
                Err(queue::Error::Conflict) => {
                    let found = self.table.find(key.clone()).await?;
                    let last = found.map(|found| found.revision());
                    self.table.put(key, &record, last).await?
                }
                put => put?,
            };
            self.written.insert(record.pool.clone(), (revision, record));
        }
        Ok(())
    }
}

/// Returns true if the record has no news and its refresh is not due.
fn is_current(known: &PoolRecord, now: &PoolRecord) -> bool {
    // Wake-ups come a little early or late.
    let is_due = now.at.since(known.at) + SHORTEST > EVERY;
    let is_same = PoolRecord {
        at: known.at,
        ..now.clone()
    } == *known;
    is_same && !is_due
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct ScaleResponse {
    /// Demand by name of the pool; an unknown pool is missing.
    pools: BTreeMap<String, PoolDemand>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct PoolDemand {
    /// Number of open workspaces.
    held: u64,
    /// Runs that wait for a slot.
    waiting: u64,
    /// Sum of both: the slots that are needed.
    demand: u64,
}

pub(crate) fn scale_router() -> Router {
    Router::new().route("/scale", get(async || Json(scale_response(last_slots()))))
}

fn scale_response(figures: Vec<PoolFigures>) -> ScaleResponse {
    let pools = figures.into_iter().map(|PoolFigures { pool, slots, waiting }| {
        let held = u64::from(slots.held);
        let demand = PoolDemand {
            held,
            waiting,
            demand: held + waiting,
        };
        (pool, demand)
    });
    ScaleResponse {
        pools: pools.collect(),
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    #[test]
    fn pool_record_follows_change_or_due_time() {
        let at = |ms| PoolRecord {
            at: Timestamp::from_unix_ms(ms),
            ..PoolRecord::default()
        };
        assert!(is_current(&at(0), &at(2_000)));
        assert!(!is_current(&at(0), &at(10_000)));
        let changed = PoolRecord {
            unresolved: vec!["dns://executor:7403".to_owned()],
            ..at(2_000)
        };
        assert!(!is_current(&at(0), &changed));
    }

    #[test]
    fn pool_demand_sums_open_and_waiting() {
        let slots = PoolSlots {
            free: 0,
            total: 4,
            held: 3,
        };
        let figures = PoolFigures {
            pool: "default".to_owned(),
            slots,
            waiting: 2,
        };
        let response = serde_json::to_value(scale_response(vec![figures])).unwrap();
        let wanted = serde_json::json!({"pools": {"default": {"held": 3, "waiting": 2, "demand": 5}}});
        assert_eq!(response, wanted);
    }
}
