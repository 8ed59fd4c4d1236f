//! Rows in which a ledger records the attempts and the receipt of one effect.

use async_trait::async_trait;
use domain::{ReporterFence, TicketKey, Timestamp};
use parking_lot::Mutex;

use crate::{
    ledger::{EffectClaim, EffectIntent, EffectLedger, Error},
    receipt::EffectReceipts,
};

/// Row of one effect in a ledger.
#[async_trait]
pub(crate) trait EffectRow: Send + Sync {
    /// Output of the effect.
    type Receipt: Clone + Send + Sync + 'static;

    /// The right to perform the effect.
    type Intent: Send + 'static;

    /// Reads the row before a try.
    async fn claim(&self) -> Result<EffectClaim<Self::Intent, Self::Receipt>, Error>;

    /// Returns the start of an earlier attempt with an unknown outcome.
    fn open_since(&self, intent: &Self::Intent) -> Option<Timestamp>;

    /// Records an attempt. Call it right before the outbound write, never after it.
    async fn attempt(&self, intent: &mut Self::Intent, now: Timestamp) -> Result<(), Error>;

    /// Records that the attempt had no effect, so that the next attempt need not search for its result.
    async fn withdraw(&self, intent: Self::Intent) -> Result<(), Error>;

    /// Records the receipt.
    async fn settle(&self, intent: Self::Intent, receipt: Self::Receipt) -> Result<(), Error>;
}

/// Row of a report's effect in the stored ledger, which all reporters share.
pub(crate) struct StoredEffectRow<'a> {
    pub(crate) ledger: &'a EffectLedger,
    pub(crate) ticket: &'a TicketKey,
    /// Id of the effect.
    pub(crate) id: &'a str,
    pub(crate) fence: ReporterFence,
}

#[async_trait]
impl EffectRow for StoredEffectRow<'_> {
    type Receipt = EffectReceipts;
    type Intent = EffectIntent;

    async fn claim(&self) -> Result<EffectClaim, Error> {
        self.ledger.claim(self.ticket, self.id, self.fence).await
    }

    fn open_since(&self, intent: &EffectIntent) -> Option<Timestamp> {
        intent.open_since
    }

    async fn attempt(&self, intent: &mut EffectIntent, now: Timestamp) -> Result<(), Error> {
        self.ledger.attempt(intent, now).await
    }

    async fn withdraw(&self, intent: EffectIntent) -> Result<(), Error> {
        self.ledger.withdraw(intent).await
    }

    async fn settle(&self, intent: EffectIntent, receipt: EffectReceipts) -> Result<(), Error> {
        self.ledger.settle(intent, receipt).await
    }
}

/// Row in memory, for an effect without a run. It lives as long as the tries of the effect, whose searches need no
/// record of attempts.
pub(crate) struct MemoryEffectRow<R> {
    receipt: Mutex<Option<R>>,
}

impl<R> Default for MemoryEffectRow<R> {
    fn default() -> Self {
        Self {
            receipt: Mutex::new(None),
        }
    }
}

#[async_trait]
impl<R: Clone + Send + Sync + 'static> EffectRow for MemoryEffectRow<R> {
    type Receipt = R;
    type Intent = ();

    async fn claim(&self) -> Result<EffectClaim<(), R>, Error> {
        Ok(match &*self.receipt.lock() {
            Some(receipt) => EffectClaim::Done(receipt.clone()),
            None => EffectClaim::Open(()),
        })
    }

    fn open_since(&self, (): &()) -> Option<Timestamp> {
        None
    }

    async fn attempt(&self, (): &mut (), _: Timestamp) -> Result<(), Error> {
        Ok(())
    }

    async fn withdraw(&self, (): ()) -> Result<(), Error> {
        Ok(())
    }

    async fn settle(&self, (): (), receipt: R) -> Result<(), Error> {
        *self.receipt.lock() = Some(receipt);
        Ok(())
    }
}
