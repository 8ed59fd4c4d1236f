//! Rebuilds the amounts of shared budgets from this month's journals after Redis lost them.

use std::time::Duration;

use domain::{BudgetPeriod, SpendWindow, Timestamp, cause::format_error_chain};
use lease::BudgetRebuild;
use queue::{ChargedEntry, Queue, RunJournals, SpendReader};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::SharedBudgets;

// Limit of one planner's rebuild. After it another planner may start one.
const LIMIT: Duration = Duration::from_secs(600);
// Shortest pause between two checks for lost amounts.
const PAUSE: Duration = Duration::from_secs(1);

impl SharedBudgets {
    /// Rebuilds amounts whenever they are lost, until shutdown.
    pub(crate) async fn keep(&self, queue: Queue, shutdown: CancellationToken) {
        let keep = async {
            loop {
                // Checks before it waits: the amounts may have been lost while no planner ran.
                self.rebuild_lost(queue.journal()).await;
                sleep(PAUSE).await;
                self.store.lost().await;
            }
        };
        shutdown.run_until_cancelled(keep).await;
    }

    async fn rebuild_lost(&self, journals: RunJournals) {
        // An unreachable Redis is logged where a call reserves its budget.
        let Ok(Some(rebuild)) = self.store.rebuild(LIMIT).await else {
            return;
        };
        tracing::info!("budgets are counted again from the journals of this month");
        match timeout(LIMIT, self.recount(rebuild, journals)).await {
            Ok(Ok(Some(calls))) => tracing::info!(calls, "budgets are known again"),
            Ok(Ok(None)) => tracing::warn!("the remaining amounts of budgets were lost again"),
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
        journals: RunJournals,
    ) -> Result<Option<u64>, Box<dyn std::error::Error + Send + Sync>> {
        let now = bootstrap::read_wall_clock();
        let (first, _) = BudgetPeriod::Month.around(now);
        let mut reader = SpendReader::new(journals, SpendWindow::starting_at(first), None);
        let mut calls = 0;
        while let Some(page) = reader.read_page(|_| true).await? {
            for charged in page {
                match self.count(&rebuild, &charged, now).await? {
                    RecountStep::Counted => calls += 1,
                    RecountStep::OfNoBudget => {}
                    RecountStep::Lost => return Ok(None),
                }
            }
        }
        Ok(rebuild.finish().await?.then_some(calls))
    }

    /// Counts a call in those of its periods that are still running.
    async fn count(
        &self,
        rebuild: &BudgetRebuild,
        charged: &ChargedEntry,
        now: Timestamp,
    ) -> Result<RecountStep, lease::Error> {
        let ChargedEntry { source, entry, .. } = charged;
        let (Some(charge), Some(repository)) = (entry.fact.charge(), &source.repository) else {
            return Ok(RecountStep::OfNoBudget);
        };
        let (_, mut accounts) = self.limits.accounts(repository, entry.at);
        accounts.retain(|account| account.ends > now);
        let amount = charge.reply.spend_amount();
        let is_kept = rebuild
            .count(&charge.call.to_string(), amount, accounts, now)
            .await?;
        Ok(if is_kept {
            RecountStep::Counted
        } else {
            RecountStep::Lost
        })
    }
}

/// Result of counting one call.
enum RecountStep {
    Counted,
    /// The repository of the call's run is unknown.
    OfNoBudget,
    /// Redis lost the amounts during the rebuild.
    Lost,
}
