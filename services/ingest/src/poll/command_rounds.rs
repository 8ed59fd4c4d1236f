//! Rounds of all polls that one command drives, and the end of the work that they start.

use std::{sync::Arc, time::Duration};

use queue::Queue;
use tokio::time::{Instant, sleep};
use tracing::instrument::WithSubscriber;

use crate::{
    Config,
    facts::tracker_reader::TrackerReader,
    maintenance::sweeper::WakeupSweeper,
    policy::own_accounts::OwnAccounts,
    poll::{dry_round::LogCollector, poller::TrackerPoller},
    service::{IngestService, connect_once},
};

// Pause between two checks for the end of the work.
const REST_POLL: Duration = Duration::from_millis(200);

/// Polls for [`IngestMode::OnRequest`](crate::IngestMode::OnRequest), whose services find no work by themselves.
pub struct CommandRounds {
    queue: Queue,
    poller: TrackerPoller,
    sweeper: WakeupSweeper,
    interval: Duration,
    own_accounts: Arc<OwnAccounts>,
    outside: Arc<TrackerReader>,
    is_identified: bool,
}

impl CommandRounds {
    /// Connects to the queue.
    ///
    /// # Errors
    /// When NATS cannot be reached or settings turn out not to work.
    pub async fn connect(config: &Config) -> anyhow::Result<Self> {
        let service = IngestService::new(config)?;
        let queue = connect_once(&config.nats).await?;
        let router = service.router_over(config, queue.clone());
        let interval = Duration::from_secs(config.ingest.poll_interval_s);
        let settle = Duration::from_secs(config.ingest.checks_absent_s);
        let pending = Duration::from_secs(config.ingest.checks_pending_s);
        Ok(Self {
            own_accounts: Arc::clone(&router.own_accounts),
            outside: Arc::clone(&router.outside),
            is_identified: false,
            poller: TrackerPoller::new(router, interval, (settle, pending)),
            sweeper: WakeupSweeper::new(queue.clone(), interval),
            queue,
            interval,
        })
    }

    /// Polls and waits for the end of the work that was found, until a round finds nothing new. Returns the failed reads of
    /// the last round, as log messages for an operator.
    ///
    /// Checks that only time can settle are polled at the interval.
    ///
    /// # Errors
    /// When NATS cannot be reached.
    pub async fn run(&mut self) -> anyhow::Result<Vec<String>> {
        loop {
            let before = self.newest_records().await?;
            // Polls report failures in the log only, so a subscriber collects them.
            let log = LogCollector::default();
            if !self.is_identified {
                // Actions of an account that is not identified count as those of a person, so the user has to know.
                let identified = self.own_accounts.identify(&self.outside);
                self.is_identified = Box::pin(identified).with_subscriber(log.clone()).await;
            }
            Box::pin(self.poller.poll().with_subscriber(log.clone())).await;
            while !self.is_at_rest().await? {
                sleep(REST_POLL).await;
            }
            if self.newest_records().await? != before {
                continue;
            }
            match self.poller.settles_at() {
                Some(end) => sleep(choose_pause(end, Instant::now(), self.interval)).await,
                None => return Ok(log.take()),
            }
        }
    }

    /// True when no ticket has work that continues by itself.
    async fn is_at_rest(&mut self) -> Result<bool, queue::Error> {
        let before = self.newest_records().await?;
        let is_open = self.sweeper.has_open_work(bootstrap::read_wall_clock()).await?;
        // A planner or reporter holds its token until it has written its progress, so the tokens are counted after
        // the rows were read.
        let is_held = self.queue.count_tokens().await? > 0;
        // A record that arrived during the reads may belong to a ticket that was read before.
        Ok(!is_open && !is_held && self.newest_records().await? == before)
    }

    /// Last sequences of both logs.
    async fn newest_records(&self) -> Result<[Option<u64>; 2], queue::Error> {
        Ok([
            self.queue.triggers().newest().await?,
            self.queue.reports().newest().await?,
        ])
    }
}

/// Pause before the round that reads checks at `end`. A round that has not made an overdue read has no allowance for it, so
/// the next one waits for the interval.
fn choose_pause(end: Instant, now: Instant, interval: Duration) -> Duration {
    let left = end.saturating_duration_since(now);
    if left.is_zero() {
        interval
    } else {
        left.min(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overdue_read_waits_for_interval() {
        let (now, interval) = (Instant::now(), Duration::from_secs(60));
        let pause = |left: u64| choose_pause(now + Duration::from_secs(left), now, interval);
        assert_eq!(pause(0), interval);
        assert_eq!(pause(5), Duration::from_secs(5));
        assert_eq!(pause(90), interval);
        let overdue = choose_pause(now, now + Duration::from_secs(1), interval);
        assert_eq!(overdue, interval);
    }
}
