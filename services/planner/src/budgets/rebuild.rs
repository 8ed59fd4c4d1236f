//! Rebuilds the amounts of shared budgets from this month's journals after Redis lost them.

use std::collections::HashMap;
use std::time::Duration;

use domain::{
    BudgetPeriod, Fact, JournalEntry, RepositoryName, RunId, SpendAmount, Timestamp, TriggerReason,
    cause::format_error_chain,
};
use lease::BudgetRebuild;
use queue::{JournalPlace, Queue, RunJournals};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::SharedBudgets;

// Limit of one planner's rebuild. After it another planner may start one.
const LIMIT: Duration = Duration::from_secs(600);
// Shortest pause between two checks for lost amounts.
const PAUSE: Duration = Duration::from_secs(1);
// Clocks of planners and NATS differ: an entry may be stored a little before the time that it carries.
const CLOCKS_MS: i64 = 60_000;

/// Repository of each run that the rebuild met; `None` for runs without a job request.
type RunRepositories = HashMap<RunId, Option<RepositoryName>>;

impl SharedBudgets {
    /// Rebuilds amounts whenever they are lost, until shutdown.
    pub(crate) async fn keep(&self, queue: Queue, shutdown: CancellationToken) {
        let keep = async {
            loop {
                // Checks before it waits: the amounts may have been lost while no planner ran.
                self.look(&queue.journal()).await;
                sleep(PAUSE).await;
                self.store.lost().await;
            }
        };
        shutdown.run_until_cancelled(keep).await;
    }

    async fn look(&self, journal: &RunJournals) {
        // An unreachable Redis is logged where a call reserves its budget.
        let Ok(Some(rebuild)) = self.store.rebuild(LIMIT).await else {
            return;
        };
        tracing::info!("budgets are counted anew from the journals of this month");
        match timeout(LIMIT, self.recount(rebuild, journal)).await {
            Ok(Ok(Some(calls))) => tracing::info!(calls, "budgets are known again"),
            Ok(Ok(None)) => tracing::warn!("what budgets have left was lost once more"),
            Ok(Err(error)) => {
                tracing::warn!(error = %format_error_chain(&*error), "budgets could not be counted")
            }
            Err(_) => tracing::warn!(limit_s = LIMIT.as_secs(), "budgets could not be counted in time"),
        }
    }

    /// Counts every call of the month. Returns their number, or `None` when Redis lost the amounts during
    /// the rebuild.
    async fn recount(
        &self,
        rebuild: BudgetRebuild,
        journal: &RunJournals,
    ) -> Result<Option<u64>, Box<dyn std::error::Error + Send + Sync>> {
        let now = bootstrap::read_wall_clock();
        let (first, _) = BudgetPeriod::Month.around(now);
        let (mut calls, mut repositories) = (0, RunRepositories::new());
        let mut place = Some(JournalPlace::Since(first.plus_ms(-CLOCKS_MS)));
        while let Some(here) = place {
            let page = journal.page(here).await?;
            for (run, entry) in page.entries {
                note_repository(&mut repositories, &run, &entry);
                // The page begins before the month by the clock tolerance, so its first entries may belong
                // to the previous month.
                let Some((id, amount)) = model_call_of(&entry).filter(|_| entry.at >= first) else {
                    continue;
                };
                let Some(repository) = find_run_repository(&mut repositories, journal, &run).await? else {
                    continue;
                };
                if !self
                    .count(&rebuild, &id, amount, &repository, (entry.at, now))
                    .await?
                {
                    return Ok(None);
                }
                calls += 1;
            }
            place = page.next;
        }
        Ok(rebuild.finish().await?.then_some(calls))
    }

    /// Counts a call in those of its periods that are still running.
    async fn count(
        &self,
        rebuild: &BudgetRebuild,
        id: &str,
        amount: SpendAmount,
        repository: &RepositoryName,
        (at, now): (Timestamp, Timestamp),
    ) -> Result<bool, lease::Error> {
        let (_, mut accounts) = self.accounts(repository, at);
        accounts.retain(|account| account.ends > now);
        rebuild.count(id, amount, accounts, now).await
    }
}

fn model_call_of(entry: &JournalEntry) -> Option<(String, SpendAmount)> {
    let amount = entry.fact.taken()?;
    match &entry.fact {
        Fact::ModelReplied { id, .. } | Fact::Summarized { id, .. } => Some((id.to_string(), amount)),
        _ => None,
    }
}

fn note_repository(repositories: &mut RunRepositories, run: &RunId, entry: &JournalEntry) {
    if let Fact::RunStarted { trigger } = &entry.fact {
        let repository = match &trigger.reason {
            TriggerReason::JobRequested(request) => Some(request.repository.clone()),
            _ => None,
        };
        repositories.insert(run.clone(), repository);
    }
}

/// Returns the repository of a run. A run that began before this month is read from its journal.
async fn find_run_repository(
    repositories: &mut RunRepositories,
    journal: &RunJournals,
    run: &RunId,
) -> Result<Option<RepositoryName>, queue::Error> {
    if !repositories.contains_key(run) {
        let entries = match journal.read(run).await {
            // An unreadable journal must not keep every other run from being counted.
            Err(queue::Error::Corrupt { .. }) => Vec::new(),
            entries => entries?,
        };
        // A run without a repository is remembered, too, so that its journal is read once.
        repositories.insert(run.clone(), None);
        for (_, entry) in entries.iter().take(1) {
            note_repository(repositories, run, entry);
        }
    }
    Ok(repositories.get(run).cloned().flatten())
}
