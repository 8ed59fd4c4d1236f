//! Amounts that were lost are told again by one planner, call by call.

use std::time::Duration;

use domain::{Amount, Timestamp};

use super::{
    Account, Budgets,
    book::Untold,
    store::{Known, Settled, Store},
};
use crate::Error;

/// The right to tell the server what it lost. Others go on meanwhile; a call that they settle is not counted twice.
pub struct Rebuild {
    store: Store,
    generation: String,
}

impl Budgets {
    /// Waits until a planner of this process noticed that amounts are not known.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// The right to rebuild, for so long; `None` when there is nothing to do or somebody is at it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn rebuild(&self, limit: Duration) -> Result<Option<Rebuild>, Error> {
        let state = failpoint::around("lease.budget.state", self.store.state()).await?;
        if state.is_complete || !self.store.lock(&state.generation, limit).await? {
            return Ok(None);
        }
        Ok(Some(Rebuild {
            store: self.store.clone(),
            generation: state.generation,
        }))
    }
}

impl Rebuild {
    /// Counts a call of a journal, unless it counts already. False: the amounts were lost once more.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn count(
        &self,
        call: &str,
        amount: Amount,
        accounts: Vec<Account>,
        at: Timestamp,
    ) -> Result<bool, Error> {
        let told = Untold {
            call: call.to_owned(),
            amount,
            accounts,
            at,
        };
        let settled = self
            .store
            .settle_in(&self.generation, &told, Known::Stays)
            .await?;
        Ok(settled == Settled::Yes)
    }

    /// Every call was counted. False: the amounts were lost once more.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn finish(self) -> Result<bool, Error> {
        failpoint::around("lease.budget.complete", self.store.complete(&self.generation)).await
    }
}
