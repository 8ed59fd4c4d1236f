//! Cycle of one effect, which performs it once: claim, search, attempt, create, receipt.

use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    effect_error::EffectError,
    effect_row::EffectRow,
    ledger::{self, EffectClaim},
    receipt::{EffectOrigin, SettledEffect},
};

// Interval of the search for the result of an attempt with an unknown outcome.
const SEARCH_INTERVAL: Duration = Duration::from_secs(2);

/// Steps of one effect.
#[async_trait]
pub(crate) trait EffectSteps: Send + Sync {
    /// Output of the effect, which is its receipt in the ledger.
    type Receipt: Clone + Send + Sync + 'static;

    /// Returns the name of the effect.
    fn name(&self) -> &'static str;

    /// Returns true if one search is sufficient before a repetition. If false, an attempt with an unknown outcome is
    /// searched for until its window has passed.
    fn absorbs_repetition(&self) -> bool {
        true
    }

    /// Returns true if the effect writes nothing outside, so that its row needs no attempt.
    fn only_reads(&self) -> bool {
        false
    }

    /// Returns the result if the effect is already done. Effects whose repetition changes nothing keep the default.
    async fn find_result(&self) -> Result<Option<Self::Receipt>, EffectError> {
        Ok(None)
    }

    /// Performs the effect.
    async fn create(&self) -> Result<Self::Receipt, EffectError>;

    /// Takes the result back because another performer owns the effect by now.
    async fn take_back(&self, _: &Self::Receipt) {}
}

/// Search for the result of an earlier attempt.
pub(crate) enum AttemptSearch<'a> {
    /// One search before each attempt, because a person waits and earlier processes left no row.
    Once,
    /// Repeated searches until an attempt with an unknown outcome can no longer arrive.
    Window {
        /// Time after the start of an attempt in which it may still arrive.
        length: Duration,
        /// Shutdown of the process, which ends the search.
        shutdown: &'a CancellationToken,
    },
}

impl AttemptSearch<'_> {
    /// Searches for an earlier result. If a repetition would be visible, an open attempt is searched for until it can
    /// no longer arrive.
    async fn find<E: EffectSteps>(
        &self,
        effect: &E,
        open_since: Option<Timestamp>,
    ) -> Result<Option<E::Receipt>, EffectError> {
        let (length, shutdown) = match self {
            Self::Window { length, shutdown } if !effect.absorbs_repetition() => (*length, *shutdown),
            // A repetition of this effect is invisible, so one search is sufficient and the reporter does not wait
            // for the window to pass.
            Self::Window { .. } | Self::Once => return search_once(effect).await,
        };
        // No attempt is open, so nothing can have been written.
        let Some(open_until) = open_since.map(|since| since.plus(length)) else {
            return Ok(None);
        };
        loop {
            if let Some(receipt) = search_once(effect).await? {
                return Ok(Some(receipt));
            }
            let left = open_until.since(bootstrap::read_wall_clock());
            if left.is_zero() {
                return Ok(None);
            }
            pause_until_shutdown(shutdown, SEARCH_INTERVAL.min(left)).await?;
        }
    }
}

/// Performs one effect, unless its row has a receipt or a search finds its result.
///
/// # Errors
/// The effect is not done, or its outcome is unknown. In the second case its attempt stays in the row.
pub(crate) async fn perform_effect<E, L>(
    effect: &E,
    row: &L,
    search: &AttemptSearch<'_>,
) -> Result<SettledEffect<E::Receipt>, EffectError>
where
    E: EffectSteps,
    L: EffectRow<Receipt = E::Receipt>,
{
    let mut intent = match row.claim().await? {
        EffectClaim::Done(receipts) => {
            return Ok(SettledEffect {
                receipts,
                how: EffectOrigin::Known,
            });
        }
        EffectClaim::Open(intent) => intent,
    };
    if let Some(receipts) = search.find(effect, row.open_since(&intent)).await? {
        row.settle(intent, receipts.clone()).await?;
        return Ok(SettledEffect {
            receipts,
            how: EffectOrigin::Found,
        });
    }
    // The attempt is recorded before the write: after a crash in between, the next performer searches for its
    // result. A performer that lost the row stops here.
    let writes = !effect.only_reads();
    if writes {
        row.attempt(&mut intent, bootstrap::read_wall_clock()).await?;
    }
    match failpoint::around_kind("reporter.effect.create", effect.name(), effect.create()).await {
        Ok(receipts) => match row.settle(intent, receipts.clone()).await {
            Ok(()) => Ok(SettledEffect {
                receipts,
                how: EffectOrigin::Created,
            }),
            // The write happened although another reporter has the ticket by now.
            Err(superseded @ ledger::Error::Superseded) => {
                effect.take_back(&receipts).await;
                Err(superseded.into())
            }
            Err(error @ ledger::Error::Queue(_)) => Err(error.into()),
        },
        // The write may have happened, so its attempt stays in the row.
        Err(trouble @ (EffectError::Unknown(_) | EffectError::Ledger(_))) => Err(trouble),
        // The failure is certain, so no later try has to search for a result.
        Err(trouble) if writes => {
            row.withdraw(intent).await?;
            Err(trouble)
        }
        Err(trouble) => Err(trouble),
    }
}

async fn search_once<E: EffectSteps>(effect: &E) -> Result<Option<E::Receipt>, EffectError> {
    failpoint::around_kind("reporter.effect.look", effect.name(), effect.find_result()).await
}

/// Waits, or returns an error when the process shuts down.
pub(crate) async fn pause_until_shutdown(
    shutdown: &CancellationToken,
    wait: Duration,
) -> Result<(), EffectError> {
    shutdown
        .run_until_cancelled(tokio::time::sleep(wait))
        .await
        .ok_or(EffectError::Shutdown)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::effect_row::MemoryEffectRow;

    /// Effect whose responses are lost after the write.
    #[derive(Default)]
    struct LostResponse {
        writes: AtomicU32,
    }

    #[async_trait]
    impl EffectSteps for LostResponse {
        type Receipt = u32;

        fn name(&self) -> &'static str {
            "lost_response"
        }

        async fn find_result(&self) -> Result<Option<u32>, EffectError> {
            let writes = self.writes.load(Ordering::Relaxed);
            Ok((writes > 0).then_some(writes))
        }

        async fn create(&self) -> Result<u32, EffectError> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Err(EffectError::Unknown(String::new()))
        }
    }

    /// Row that counts its writes.
    #[derive(Default)]
    struct CountedRow {
        row: MemoryEffectRow<u32>,
        writes: AtomicU32,
    }

    impl CountedRow {
        fn count(&self) {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[async_trait]
    impl EffectRow for CountedRow {
        type Receipt = u32;
        type Intent = ();

        async fn claim(&self) -> Result<EffectClaim<(), u32>, ledger::Error> {
            self.row.claim().await
        }

        fn open_since(&self, (): &()) -> Option<Timestamp> {
            None
        }

        async fn attempt(&self, (): &mut (), _: Timestamp) -> Result<(), ledger::Error> {
            self.count();
            Ok(())
        }

        async fn withdraw(&self, (): ()) -> Result<(), ledger::Error> {
            self.count();
            Ok(())
        }

        async fn settle(&self, (): (), receipt: u32) -> Result<(), ledger::Error> {
            self.count();
            self.row.settle((), receipt).await
        }
    }

    /// Effect that succeeds, unless it is refused.
    struct SimpleEffect {
        reads: bool,
        is_refused: bool,
    }

    #[async_trait]
    impl EffectSteps for SimpleEffect {
        type Receipt = u32;

        fn name(&self) -> &'static str {
            "simple"
        }

        fn only_reads(&self) -> bool {
            self.reads
        }

        async fn create(&self) -> Result<u32, EffectError> {
            if self.is_refused {
                Err(EffectError::Failed(String::new()))
            } else {
                Ok(1)
            }
        }
    }

    #[tokio::test]
    async fn reading_effect_records_its_receipt_alone() {
        for (reads, is_refused, writes) in [
            (false, false, 2),
            (false, true, 2),
            (true, false, 1),
            (true, true, 0),
        ] {
            let (effect, row) = (SimpleEffect { reads, is_refused }, CountedRow::default());
            let performed = perform_effect(&effect, &row, &AttemptSearch::Once).await;
            assert_eq!(performed.is_err(), is_refused);
            assert_eq!(row.writes.load(Ordering::Relaxed), writes, "{reads} {is_refused}");
        }
    }

    #[tokio::test]
    async fn lost_response_is_found_by_next_try() {
        let (effect, row) = (LostResponse::default(), MemoryEffectRow::<u32>::default());
        let search = AttemptSearch::Once;
        let lost = perform_effect(&effect, &row, &search).await.unwrap_err();
        assert!(matches!(lost, EffectError::Unknown(_)), "{lost}");
        for how in [EffectOrigin::Found, EffectOrigin::Known] {
            let settled = perform_effect(&effect, &row, &search).await.unwrap();
            assert_eq!((settled.receipts, settled.how), (1, how));
        }
        assert_eq!(effect.writes.load(Ordering::Relaxed), 1);
    }
}
