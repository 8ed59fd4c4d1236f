//! The collector: removes objects (packs, large bodies) after their last reference, and old calls for pull requests.

use std::time::Duration;

use domain::{PullRequestCall, Timestamp, cause::chain};
use opentelemetry::metrics::Counter;
use queue::Queue;
use tokio_util::sync::CancellationToken;

const HOUR_MS: i64 = 60 * 60 * 1000;
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes objects that nothing stored refers to.
pub(crate) struct Collector {
    queue: Queue,
    /// How long an object is kept in any case; 0: for ever.
    grace_h: u32,
    collected: Counter<u64>,
}

impl Collector {
    pub(crate) fn new(queue: Queue, grace_h: u32) -> Self {
        let collected = opentelemetry::global::meter("journeyman")
            .u64_counter("journeyman.objects.collected")
            .with_description("Objects removed because nothing refers to them any more.")
            .build();
        Self {
            queue,
            grace_h,
            collected,
        }
    }

    /// Collects at the start and then daily, until shutdown.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        if self.grace_h == 0 {
            return shutdown.cancelled().await;
        }
        loop {
            let collected = tokio::select! {
                () = shutdown.cancelled() => return,
                collected = Box::pin(self.collect(bootstrap::now())) => collected,
            };
            if let Err(error) = self.forget_calls(bootstrap::now()).await {
                tracing::warn!(error = %chain(&error), "old pull request calls not forgotten; the next round goes on");
            }
            match collected {
                Ok((0, _)) => {}
                Ok((objects, bytes)) => tracing::info!(objects, bytes, "objects collected"),
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "collection not finished; the next one goes on")
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    async fn forget_calls(&self, now: Timestamp) -> Result<(), queue::Error> {
        let kept = i64::try_from(PullRequestCall::KEPT.as_millis()).unwrap_or(i64::MAX);
        let calls = self.queue.pull_request_calls();
        let forgotten = calls.forget_before(now.plus_ms(-kept)).await?;
        if forgotten > 0 {
            tracing::info!(calls = forgotten, "old pull request calls forgotten");
        }
        Ok(())
    }

    /// One round over every object; gives how many were removed and their bytes.
    async fn collect(&self, now: Timestamp) -> Result<(u64, u64), queue::Error> {
        let (objects, before) = (
            self.queue.objects(),
            now.plus_ms(-i64::from(self.grace_h) * HOUR_MS),
        );
        let (mut removed, mut bytes, mut from) = (0, 0, Some(0));
        while let Some(place) = from {
            let search = objects.unreferenced(before, place).await?;
            for garbage in &search.garbage {
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
    async fn an_unreferenced_object_is_kept_for_the_grace_time_and_then_collected() {
        let nats = NatsServer::start().await.unwrap();
        let settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&settings, "test").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let object = queue.objects().put(Bytes::from_static(b"pack")).await.unwrap();
        let collector = Collector::new(queue.clone(), 24);
        let now = bootstrap::now();
        assert_eq!(
            collector.collect(now.plus_ms(23 * HOUR_MS)).await.unwrap(),
            (0, 0)
        );
        assert_eq!(queue.objects().get(&object).await.unwrap(), "pack");
        assert_eq!(
            collector.collect(now.plus_ms(25 * HOUR_MS)).await.unwrap(),
            (1, 4)
        );
        assert!(queue.objects().get(&object).await.is_err());
    }
}
