//! The projector: keeps the records of runs, which lists and pages show, up with the journals.

use std::time::Duration;

use domain::cause::chain;
use futures::StreamExt as _;
use queue::{Queue, Runs};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long entries gather before they are taken in: a run at work writes several a second.
const GATHER: Duration = Duration::from_millis(150);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// Follows all journals.
pub(crate) struct Projector {
    queue: Queue,
    runs: Runs,
}

impl Projector {
    pub(crate) fn new(queue: Queue) -> Self {
        let runs = queue.runs();
        Self { queue, runs }
    }

    /// Takes in what is written, until shutdown.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                if let Err(error) = self.follow().await {
                    tracing::warn!(error = %chain(&error), "listings of runs are behind, trying again");
                }
                sleep(PAUSE).await;
            }
        };
        shutdown.run_until_cancelled(Box::pin(work)).await;
    }

    /// The journals' new entries only tell when to look; they are read in order from where the last look ended, so none is
    /// lost when the stream of them breaks.
    async fn follow(&self) -> Result<(), queue::Error> {
        let mut news = self.queue.journal().follow_all().await?;
        let mut from = self.runs.place().await?;
        loop {
            while let Some(next) = self.runs.take_in(from).await? {
                from = next;
                self.runs.keep_place(from).await?;
            }
            if news.next().await.is_none() {
                return Ok(());
            }
            sleep(GATHER).await;
            while let Some(Some(_)) = futures::FutureExt::now_or_never(news.next()) {}
        }
    }
}
