//! Rebuild of lost amounts by one planner, call by call from the journals.

use std::time::Duration;

use domain::{SpendAmount, Timestamp};

use super::{
    BudgetAccount, RedisBudgets,
    local_budgets::UnsentSettlement,
    store::{BudgetStore, SettledCallPolicy, SettlementOutcome},
};
use crate::Error;

/// Right to rebuild the server's amounts. Other planners continue meanwhile; a call that they settle is
/// counted once.
pub struct BudgetRebuild {
    store: BudgetStore,
    generation: String,
    /// Token of this claim. The generation is no token: a planner whose lock expired and its successor
    /// rebuild the same one.
    owner: String,
}

impl RedisBudgets {
    /// Waits until a planner of this process finds the server's amounts incomplete.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Claims the right to rebuild for a time; `None` when nothing is lost or another planner has claimed it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn rebuild(&self, limit: Duration) -> Result<Option<BudgetRebuild>, Error> {
        let state = failpoint::around("lease.budget.state", self.store.state()).await?;
        let owner = uuid::Uuid::new_v4().simple().to_string();
        // The lock expires, so that another planner continues after a crash.
        if state.is_complete || !self.store.lock(&owner, limit).await? {
            return Ok(None);
        }
        Ok(Some(BudgetRebuild {
            store: self.store.clone(),
            generation: state.generation,
            owner,
        }))
    }
}

impl BudgetRebuild {
    /// Counts a call of a journal, unless it is counted already. Returns false when the amounts were lost
    /// again.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn count(
        &self,
        call: &str,
        amount: SpendAmount,
        accounts: Vec<BudgetAccount>,
        at: Timestamp,
    ) -> Result<bool, Error> {
        let unsent = UnsentSettlement {
            call: call.to_owned(),
            amount,
            accounts,
            at,
        };
        let settled = self
            .store
            // Not `settle`, which continues in a newer generation: that one lacks the calls that were
            // counted before.
            .settle_in(&self.generation, &unsent, SettledCallPolicy::Stays)
            .await?;
        Ok(settled == SettlementOutcome::Yes)
    }

    /// Marks the amounts as complete after every call was counted, and releases the right to rebuild unless
    /// another planner has it by now. Returns false when the amounts were lost again.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn finish(self) -> Result<bool, Error> {
        let completed = self.store.complete(&self.generation, &self.owner);
        failpoint::around("lease.budget.complete", completed).await
    }
}
