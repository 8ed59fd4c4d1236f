//! Waits by events: answers of the stand-ins, and the live stream of a run's journal. Neither reads a journal
//! over and over, which would load the measured services.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::{Fact, JournalEntry, RunId, StopReason};
use e2e::TestWorld;
use futures::TryStreamExt as _;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use crate::output::print_line;

/// Time limit of a wait, far above the duration of any step here.
const PATIENCE: Duration = Duration::from_secs(300);
/// Pause after an answer that asks for another attempt.
const PAUSE: Duration = Duration::from_secs(1);
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
    let journal = timeout(RUN_LIMIT, follow_journal(world, &run))
        .await
        .with_context(|| format!("{run} did not end"))??;
    let last = journal.last().context("an empty journal")?;
    let Fact::RunFinished { reason } = &last.fact else {
        anyhow::bail!("the journal of {run} has no end");
    };
    ensure!(wanted(reason), "{run} ended with {reason:?}");
    Ok(journal)
}

/// Follows a run to its end. The bench saturates the machine on purpose, so the API may ask for another attempt.
async fn follow_journal(world: &TestWorld, run: &RunId) -> Result<Vec<JournalEntry>, api::Error> {
    loop {
        let followed = async {
            let entries = world.client.runs().follow(run).await?;
            entries.try_collect().await
        };
        match followed.await {
            Err(error) if matches!(&error, api::Error::Refused { status, .. } if status.as_u16() == 503) => {
                print_line(&format!("# {run} is followed again: {error}"));
                sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// True for the end of a run that changes nothing.
pub(crate) fn no_change(reason: &StopReason) -> bool {
    matches!(reason, StopReason::NoChange { .. } | StopReason::GivenUp { .. })
}

/// True for the end of a run with a result.
pub(crate) fn is_completed(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Completed)
}
