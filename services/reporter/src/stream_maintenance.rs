//! Maintenance of the streams: removes old journals, calls and orders, and objects (packs, large bodies) without
//! references. The reporter does it, because strangers do not reach it.

use std::time::Duration;

use domain::{MaintenanceOrder, PullRequestCall, Timestamp, cause::format_error_chain};
use opentelemetry::metrics::Counter;
use queue::{Queue, UPKEEP};
use tokio_util::sync::CancellationToken;

use crate::config::RetentionSettings;

const HOUR_MS: i64 = 60 * 60 * 1000;
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
// Interval of the check for a full object store.
const POLL_INTERVAL: Duration = Duration::from_secs(60);
// Use of the object store, in percent, above which it is collected immediately.
const FILLING_PERCENT: u64 = 70;
// Pause between two collections of a full object store.
const FILLING_EVERY: Duration = Duration::from_secs(5 * 60);
// Age up to which objects are kept while the object store is full, in hours. It exceeds by far the time in which a
// writer records a reference to a new object.
const FILLING_GRACE_H: u32 = 1;
// Time after which another reporter takes over the maintenance.
const TAKEOVER: Duration = Duration::from_secs(15);
// Hours without a rollup after which no process of an earlier release can need rollups.
const QUIET_H: i64 = 24;

/// Maintenance worker of the streams.
#[derive(Clone)]
pub(crate) struct StreamUpkeep {
    queue: Queue,
    retention: RetentionSettings,
    collected: Counter<u64>,
}

impl StreamUpkeep {
    pub(crate) fn new(queue: Queue, retention: RetentionSettings) -> Self {
        let collected = opentelemetry::global::meter("journeyman")
            .u64_counter("journeyman.objects.collected")
            .with_description("Objects removed because nothing refers to them any more.")
            .build();
        Self {
            queue,
            retention,
            collected,
        }
    }

    /// Runs a round at the start and then daily, and collects immediately while the object store is full. One of all
    /// reporters runs it, until shutdown.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let singleton = self.queue.singleton(UPKEEP, TAKEOVER);
        let stop = shutdown.clone();
        let work = move || {
            let (upkeep, stop) = (self.clone(), stop.clone());
            async move { Box::pin(upkeep.work(stop)).await }
        };
        singleton.run(shutdown, work).await;
    }

    async fn work(&self, shutdown: CancellationToken) {
        loop {
            let now = bootstrap::read_wall_clock();
            let round = shutdown.run_until_cancelled(Box::pin(self.round(now))).await;
            let waited = shutdown.run_until_cancelled(Box::pin(self.rest())).await;
            if round.is_none() || waited.is_none() {
                return;
            }
        }
    }

    /// Waits for the next round. Collects while the object store is full.
    async fn rest(&self) {
        let filling = async {
            loop {
                self.until_filling().await;
                // The smaller value wins, so that 0 still keeps all objects forever, even in a full
                // store.
                let grace_h = self.retention.object_grace_h.min(FILLING_GRACE_H);
                self.collect_now(bootstrap::read_wall_clock(), grace_h).await;
            }
        };
        tokio::select! {
            // The daily round may drop a collection in progress, because it starts with one of its own.
            () = tokio::time::sleep(EVERY) => {}
            () = filling => {}
        }
    }

    async fn until_filling(&self) {
        // The round before has just collected, so the check waits first.
        tokio::time::sleep(FILLING_EVERY).await;
        loop {
            match self.queue.objects().used_percent().await {
                Ok(percent) if percent >= FILLING_PERCENT => {
                    tracing::warn!(
                        percent,
                        "the object store is filling; collecting what nothing refers to"
                    );
                    return;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(error = %format_error_chain(&error), "the object store's use is unknown")
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Runs one round. The next one repeats failed steps.
    async fn round(&self, now: Timestamp) {
        // Journals and calls go before the objects: what only they refer to is collected in the same
        // round.
        match self.expire(now).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, days = self.retention.journal_days, "old journals forgotten"),
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "old journals could not be read")
            }
        }
        match self.forget_requests(now).await {
            Ok(0) => {}
            Ok(requests) => {
                tracing::info!(
                    requests,
                    "old pull request calls, orders of maintenance forgotten"
                )
            }
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "old calls not forgotten; the next round continues")
            }
        }
        self.collect_now(now, self.retention.object_grace_h).await;
        match self.queue.forbid_rollups(now.plus_ms(-QUIET_H * HOUR_MS)).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::info!(
                    "rollups in the object store stay allowed: it is new, or an earlier release writes them"
                )
            }
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "rollups in the object store not forbidden")
            }
        }
    }

    async fn collect_now(&self, now: Timestamp, grace_h: u32) {
        match self.collect(now, grace_h).await {
            Ok((0, _)) => {}
            Ok((objects, bytes)) => tracing::info!(objects, bytes, "objects collected"),
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "collection not finished; the next one continues")
            }
        }
    }

    /// Removes the journals of runs that ended long ago, and returns their number.
    async fn expire(&self, now: Timestamp) -> Result<u64, queue::Error> {
        if self.retention.journal_days == 0 {
            return Ok(0);
        }
        let before = now.plus_ms(-i64::from(self.retention.journal_days) * 24 * HOUR_MS);
        self.queue.journal().expire(before).await
    }

    async fn forget_requests(&self, now: Timestamp) -> Result<u64, queue::Error> {
        let before = |kept: Duration| now.plus_ms(-i64::try_from(kept.as_millis()).unwrap_or(i64::MAX));
        let calls = self.queue.pull_request_calls();
        let orders = self.queue.maintenance_orders();
        let forgotten = calls.forget_before(before(PullRequestCall::KEPT)).await?;
        Ok(forgotten + orders.forget_before(before(MaintenanceOrder::KEPT)).await?)
    }

    /// Collects objects, unless they are kept forever. Returns their number and size in bytes.
    async fn collect(&self, now: Timestamp, grace_h: u32) -> Result<(u64, u64), queue::Error> {
        if self.retention.object_grace_h == 0 {
            return Ok((0, 0));
        }
        let (objects, before) = (self.queue.objects(), now.plus_ms(-i64::from(grace_h) * HOUR_MS));
        // A newer description of the same object exists, so these need no search for references.
        objects.remove_superseded().await?;
        let (mut removed, mut bytes, mut from) = (0, 0, Some(0));
        while let Some(place) = from {
            let search = objects.unreferenced(before, place).await?;
            for garbage in &search.garbage {
                // Returns false for an object that was stored again in the meantime.
                if objects.remove(garbage).await? {
                    tracing::debug!(object = garbage.name, "object collected");
                    (removed, bytes) = (removed + 1, bytes + garbage.size_bytes);
                    self.collected.add(1, &[]);
                }
            }
            from = search.next;
        }
        let torn = objects.remove_torn(before).await?;
        if torn > 0 {
            tracing::info!(
                objects = torn,
                "chunks of objects that were never finished collected"
            );
        }
        Ok((removed, bytes))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use testkit::NatsServer;

    use super::*;

    #[tokio::test]
    async fn unreferenced_object_is_collected_after_grace() {
        let nats = NatsServer::start().await.unwrap();
        let settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&settings, "test").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let object = queue.objects().put(Bytes::from_static(b"pack")).await.unwrap();
        let collector = StreamUpkeep::new(queue.clone(), RetentionSettings::default());
        let now = bootstrap::read_wall_clock();
        assert_eq!(
            collector.collect(now.plus_ms(23 * HOUR_MS), 24).await.unwrap(),
            (0, 0)
        );
        assert_eq!(queue.objects().get(&object).await.unwrap(), "pack");
        assert_eq!(
            collector.collect(now.plus_ms(25 * HOUR_MS), 24).await.unwrap(),
            (1, 4)
        );
        assert!(queue.objects().get(&object).await.is_err());
    }
}
