//! Work that one process of a cluster does at a time: its holder renews a record, and another process takes
//! over when the renewals stop.
//!
//! No clocks are compared. A holder counts from before it sent its last successful renewal. The others count
//! from when they first read that renewal, which is later, and wait longer.

use std::{pin::pin, time::Duration};

use domain::{RecordKind, StoredRecord, cause::format_error_chain};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    error::Error,
    names,
    table::TypedTable,
    unreadable_record::{FoundValue, TableRevision},
};

/// Record of the holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HolderRecord {
    /// Random id of the process; empty after the holder gave up the work.
    holder: String,
    /// Number of renewals; each one changes the record's revision.
    renewals: u64,
}

impl StoredRecord for HolderRecord {
    const KIND: RecordKind = RecordKind::Control;
}

/// Work that one of several ready processes does at a time.
pub struct SingletonWork {
    table: TypedTable<HolderRecord>,
    name: String,
    holder: String,
    ttl: Duration,
}

/// Record of another holder, and when this process first read it.
struct SeenHolder {
    revision: Option<TableRevision>,
    since: Instant,
}

/// Record that this process holds.
struct HeldWork {
    revision: TableRevision,
    renewals: u64,
    /// Time until which no other process begins.
    until: Instant,
}

impl SingletonWork {
    pub(crate) fn new(table: TypedTable<HolderRecord>, name: &str, ttl: Duration) -> Self {
        Self {
            table,
            name: names::build_singleton_key(name),
            holder: Uuid::new_v4().to_string(),
            ttl,
        }
    }

    /// Does the work whenever this process holds it, until shutdown.
    ///
    /// The future of `work` is dropped as soon as this process cannot be sure to be the only holder. `work`
    /// is called again when it holds the record again.
    pub async fn run<F, Fut>(&self, shutdown: CancellationToken, mut work: F)
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        while let Some(hold) = shutdown.run_until_cancelled(self.acquire()).await {
            tracing::info!(name = self.name, "this process does the work now");
            let kept = self.keep(hold, &shutdown, work()).await;
            match kept {
                Some(revision) => self.give_up(revision).await,
                None => tracing::warn!(name = self.name, "another process may do the work now"),
            }
            // Work that ends at once must not become a busy loop.
            shutdown.run_until_cancelled(sleep(self.ttl / 10)).await;
        }
    }

    /// Time that a holder continues without a renewal: shorter than [`Self::patience`].
    fn trusts(&self) -> Duration {
        // The others begin at three quarters of the time. The quarter in between is for a holder whose
        // work stops late.
        self.ttl / 2
    }

    /// Time that the others wait after they read a renewal.
    fn patience(&self) -> Duration {
        self.ttl * 3 / 4
    }

    /// Waits until this process holds the record.
    async fn acquire(&self) -> HeldWork {
        let mut seen: Option<SeenHolder> = None;
        loop {
            match self.attempt(&mut seen).await {
                Ok(Some(hold)) => return hold,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(name = self.name, error = %format_error_chain(&error), "not known who does the work")
                }
            }
            sleep(self.ttl / 10).await;
        }
    }

    async fn attempt(&self, seen: &mut Option<SeenHolder>) -> Result<Option<HeldWork>, Error> {
        let (revision, is_free) = match self.table.find(&self.name).await? {
            None => (None, true),
            Some(FoundValue::Value(holder, revision)) => (Some(revision), holder.holder.is_empty()),
            // It counts as held: a holder of another release renews it in the same way.
            Some(FoundValue::Unreadable(unreadable)) => (Some(unreadable.revision()), false),
        };
        let since = match seen {
            Some(seen) if seen.revision == revision => seen.since,
            _ => Instant::now(),
        };
        *seen = Some(SeenHolder { revision, since });
        if !is_free && since.elapsed() < self.patience() {
            return Ok(None);
        }
        self.put(revision, 0).await
    }

    /// Writes this process's id with compare-and-set; returns `None` if another process was faster.
    async fn put(&self, last: Option<TableRevision>, renewals: u64) -> Result<Option<HeldWork>, Error> {
        // Before the request: the others count from when they read the record, which is later.
        let began = Instant::now();
        let holder = HolderRecord {
            holder: self.holder.clone(),
            renewals,
        };
        match self.table.put(&self.name, &holder, last).await {
            Ok(revision) => Ok(Some(HeldWork {
                revision,
                renewals,
                until: began + self.trusts(),
            })),
            Err(Error::Conflict) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs the work and renews the record. Returns the last revision when the work ends or the process shuts
    /// down, `None` when the record is lost.
    async fn keep(
        &self,
        mut hold: HeldWork,
        shutdown: &CancellationToken,
        work: impl Future<Output = ()> + Send,
    ) -> Option<TableRevision> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                // Shutdown first, so that the record is given up. The renewal goes before the work,
                // which must not be polled again after the record is lost.
                biased;
                () = shutdown.cancelled() => return Some(hold.revision),
                renewed = self.renewed(&hold) => hold = renewed?,
                () = &mut work => return Some(hold.revision),
            }
        }
    }

    /// Renews the record. Returns `None` if no renewal succeeded before the time at which another process may
    /// begin.
    async fn renewed(&self, hold: &HeldWork) -> Option<HeldWork> {
        // Three renewals fit into the time that a holder trusts, so a single failure does not end its
        // work.
        sleep(self.ttl / 6).await;
        while Instant::now() < hold.until {
            match timeout_at(hold.until, self.put(Some(hold.revision), hold.renewals + 1)).await {
                Ok(Ok(renewed)) => return renewed,
                Ok(Err(error)) => {
                    tracing::debug!(name = self.name, error = %format_error_chain(&error), "not renewed, trying again");
                    sleep_until(hold.until.min(Instant::now() + self.ttl / 20)).await;
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// Clears the record, so that another process begins at once.
    async fn give_up(&self, last: TableRevision) {
        let nobody = HolderRecord {
            holder: String::new(),
            renewals: 0,
        };
        if let Err(error) = self.table.put(&self.name, &nobody, Some(last)).await {
            tracing::debug!(
                name = self.name,
                error = %format_error_chain(&error),
                "not given up; others wait until it runs out"
            );
        }
    }
}
