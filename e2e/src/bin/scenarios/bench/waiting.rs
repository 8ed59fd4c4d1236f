//! Waits by events: answers of the stand-ins, and the live stream of a run's journal. Neither reads a journal
//! over and over, which would load the measured services.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::{Fact, JournalEntry, StopReason};
use e2e::TestWorld;
use futures::TryStreamExt as _;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// Time limit of a wait, far above the duration of any step here.
const PATIENCE: Duration = Duration::from_secs(300);
/// Time limit of a run, which may contain checks of a minute.
const RUN_LIMIT: Duration = Duration::from_secs(1200);

/// Waits until a condition holds. It is checked at each answer of a stand-in.
pub(crate) async fn wait_for(
    what: &str,
    mut answered: watch::Receiver<u64>,
    mut reached: impl FnMut() -> bool,
) -> anyhow::Result<Instant> {
    let wait = async {
        loop {
            // Marked as seen before the check, so that an answer during the check causes another one.
            answered.mark_unchanged();
            if reached() {
                return Ok(Instant::now());
            }
            answered.changed().await.context("a stand-in stopped")?;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .with_context(|| format!("{what}: not seen"))?
}

/// Waits for the end of a ticket's first run and returns its journal.
pub(crate) async fn wait_for_end(
    world: &TestWorld,
    key: &str,
    wanted: fn(&StopReason) -> bool,
) -> anyhow::Result<Vec<JournalEntry>> {
    let run = world.run(key, 0).await?;
    let follow = async {
        let entries = world.client.runs().follow(&run).await?;
        entries.try_collect::<Vec<JournalEntry>>().await
    };
    let journal = timeout(RUN_LIMIT, follow)
        .await
        .with_context(|| format!("{run} did not end"))??;
    let last = journal.last().context("an empty journal")?;
    let Fact::RunFinished { reason } = &last.fact else {
        anyhow::bail!("the journal of {run} has no end");
    };
    ensure!(wanted(reason), "{run} ended with {reason:?}");
    Ok(journal)
}

/// True for the end of a run that changes nothing.
pub(crate) fn no_change(reason: &StopReason) -> bool {
    matches!(reason, StopReason::NoChange { .. } | StopReason::GivenUp { .. })
}

/// True for the end of a run with a result.
pub(crate) fn is_completed(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Completed)
}
