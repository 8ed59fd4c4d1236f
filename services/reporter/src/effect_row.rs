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

/// Row in memory, for an effect without a run. It lives as long as the tries of the effect.
pub(crate) struct MemoryEffectRow<R> {
    record: Mutex<MemoryRecord<R>>,
}

/// Content of a row in memory.
struct MemoryRecord<R> {
    /// Start of the attempt whose outcome is unknown.
    open_since: Option<Timestamp>,
    receipt: Option<R>,
}

impl<R> Default for MemoryEffectRow<R> {
    fn default() -> Self {
        Self {
            record: Mutex::new(MemoryRecord {
                open_since: None,
                receipt: None,
            }),
        }
    }
}

#[async_trait]
impl<R: Clone + Send + Sync + 'static> EffectRow for MemoryEffectRow<R> {
    type Receipt = R;
    /// Start of an earlier attempt with an unknown outcome.
    type Intent = Option<Timestamp>;

    async fn claim(&self) -> Result<EffectClaim<Option<Timestamp>, R>, Error> {
        let record = self.record.lock();
        Ok(match &record.receipt {
            Some(receipt) => EffectClaim::Done(receipt.clone()),
            None => EffectClaim::Open(record.open_since),
        })
    }

    fn open_since(&self, intent: &Option<Timestamp>) -> Option<Timestamp> {
        *intent
    }

    async fn attempt(&self, intent: &mut Option<Timestamp>, now: Timestamp) -> Result<(), Error> {
        *intent = Some(now);
        self.record.lock().open_since = Some(now);
        Ok(())
    }

    async fn withdraw(&self, _: Option<Timestamp>) -> Result<(), Error> {
        self.record.lock().open_since = None;
        Ok(())
    }

    async fn settle(&self, _: Option<Timestamp>, receipt: R) -> Result<(), Error> {
        self.record.lock().receipt = Some(receipt);
        Ok(())
    }
}
