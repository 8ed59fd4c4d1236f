//! Projector: updates the records of runs from the journals, for lists and pages.

use std::time::Duration;

use domain::cause::format_error_chain;
use futures::{StreamExt as _, stream::BoxStream};
use queue::{JournalSignal, Queue, RunOverviews};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

// Time for routine entries to accumulate before they are projected: an active run writes several a second, and
// each projection rewrites the whole record of the run.
const GATHER: Duration = Duration::from_secs(1);
// The same for entries that may change the status of a run, which people wait for.
const STATUS_GATHER: Duration = Duration::from_millis(150);
// Interval between two writes of the position. After a crash the entries since then are projected again, which
// changes nothing.
const POSITION_INTERVAL: Duration = Duration::from_secs(10);
// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// Notifications of the entries of all journals as they are written.
type EntrySignals = BoxStream<'static, Result<JournalSignal, queue::Error>>;

/// Follower of all journals.
pub(crate) struct RunProjector {
    queue: Queue,
    runs: RunOverviews,
}

impl RunProjector {
    pub(crate) fn new(queue: Queue) -> Self {
        let runs = queue.runs();
        Self { queue, runs }
    }

    /// Projects new entries until shutdown.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                if let Err(error) = self.follow().await {
                    tracing::warn!(error = %format_error_chain(&error), "listings of runs are behind, trying again");
                }
                sleep(PAUSE).await;
            }
        };
        shutdown.run_until_cancelled(Box::pin(work)).await;
    }

    /// Projects entries in order from the stored position. Subscribed entries are only a signal: a gap in the subscription
    /// loses none.
    async fn follow(&self) -> Result<(), queue::Error> {
        // The subscription starts before the read, so that an entry in between is signaled.
        let mut news = self.queue.journal().signal_all().await?;
        let mut from = self.runs.place().await?;
        let mut kept_at: Option<Instant> = None;
        loop {
            while let Some(next) = self.runs.take_in(from).await? {
                from = next;
                // The position is stored after the records. After a crash in between, the entries are
                // projected again instead of being skipped.
                if kept_at.is_none_or(|kept| kept.elapsed() >= POSITION_INTERVAL) {
                    self.runs.keep_place(from).await?;
                    kept_at = Some(Instant::now());
                }
            }
            if !gather_signals(&mut news).await {
                return Ok(());
            }
        }
    }
}

/// Waits for an entry, then for more of them until a projection is due. One projection covers them all. Returns
/// false when the subscription has ended.
async fn gather_signals(news: &mut EntrySignals) -> bool {
    let mut due = None;
    loop {
        let signal = match due {
            None => news.next().await,
            Some(due) => match timeout_at(due, news.next()).await {
                Ok(signal) => signal,
                Err(_) => return true,
            },
        };
        let Some(signal) = signal else { return false };
        let wait = match signal {
            Ok(JournalSignal::Routine) => GATHER,
            // A lost entry may be of any kind.
            Ok(JournalSignal::Change) | Err(_) => STATUS_GATHER,
        };
        let latest = Instant::now() + wait;
        due = Some(due.map_or(latest, |due| latest.min(due)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn status_changes_are_projected_before_routine_entries() {
        let routine = || Ok(JournalSignal::Routine);
        let change = || Ok(JournalSignal::Change);
        for (signals, wait) in [
            (vec![routine()], GATHER),
            (vec![routine(), routine()], GATHER),
            (vec![change()], STATUS_GATHER),
            (vec![routine(), change()], STATUS_GATHER),
            (vec![Err(queue::Error::Conflict), routine()], STATUS_GATHER),
        ] {
            let mut news: EntrySignals = futures::stream::iter(signals)
                .chain(futures::stream::pending())
                .boxed();
            let start = Instant::now();
            assert!(gather_signals(&mut news).await);
            assert_eq!(start.elapsed(), wait);
        }
        let mut ended: EntrySignals = futures::stream::empty().boxed();
        assert!(!gather_signals(&mut ended).await);
    }
}
