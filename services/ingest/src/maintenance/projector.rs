//! Projector: updates the records of runs from the journals, for lists and pages.

use std::time::Duration;

use domain::cause::format_error_chain;
use futures::StreamExt as _;
use queue::{Queue, RunOverviews};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

// Time for entries to accumulate before they are projected: an active run writes several a second.
const GATHER: Duration = Duration::from_millis(150);
// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(2);

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
        let mut news = self.queue.journal().follow_all().await?;
        let mut from = self.runs.place().await?;
        loop {
            while let Some(next) = self.runs.take_in(from).await? {
                from = next;
                // The position is stored after the records. After a crash in between, the entries are
                // projected again instead of being skipped.
                self.runs.keep_place(from).await?;
            }
            if news.next().await.is_none() {
                return Ok(());
            }
            sleep(GATHER).await;
            // Drains the signals that have accumulated, because one pass covers them all.
            while let Some(Some(_)) = futures::FutureExt::now_or_never(news.next()) {}
        }
    }
}
