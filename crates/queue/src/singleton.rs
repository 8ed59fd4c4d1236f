//! Work that one process of a cluster does: a record that its holder renews, and that others take over when it stops.
//!
//! No clocks are compared. A holder counts from before it sent its last renewal that succeeded; the others count from
//! when they first saw that renewal, which is later, and wait longer.

use std::{pin::pin, time::Duration};

use domain::{RecordKind, Stored, cause::chain};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    error::Error,
    names,
    table::Table,
    unreadable::{Found, Revision},
};

/// Who does the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// Drawn anew by each process; empty once given up.
    holder: String,
    /// Changes with each renewal.
    renewals: u64,
}

impl Stored for Holder {
    const KIND: RecordKind = RecordKind::Control;
}

/// Work that runs in one process at a time, of all that are ready to do it.
pub struct Singleton {
    table: Table<Holder>,
    name: String,
    holder: String,
    ttl: Duration,
}

/// A record as somebody else left it.
struct Seen {
    revision: Option<Revision>,
    since: Instant,
}

/// What this process holds.
struct Hold {
    revision: Revision,
    renewals: u64,
    /// Until then nobody else begins.
    until: Instant,
}

impl Singleton {
    pub(crate) fn new(table: Table<Holder>, name: &str, ttl: Duration) -> Self {
        Self {
            table,
            name: names::singleton(name),
            holder: Uuid::new_v4().to_string(),
            ttl,
        }
    }

    /// Does the work whenever this process is the one to do it, until shutdown. What `work` gives is dropped at once when
    /// this process cannot be sure any more that it is the only one; it is asked for anew after that.
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
            // Work that ends at once must not become a loop without a pause.
            shutdown.run_until_cancelled(sleep(self.ttl / 10)).await;
        }
    }

    /// How long a holder goes on without a renewal; half of what the others wait for.
    fn trusts(&self) -> Duration {
        self.ttl / 2
    }

    /// How long the others wait after they saw a renewal.
    fn patience(&self) -> Duration {
        self.ttl * 3 / 4
    }

    /// Waits until this process holds the record.
    async fn acquire(&self) -> Hold {
        let mut seen: Option<Seen> = None;
        loop {
            match self.attempt(&mut seen).await {
                Ok(Some(hold)) => return hold,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(name = self.name, error = %chain(&error), "not known who does the work")
                }
            }
            sleep(self.ttl / 10).await;
        }
    }

    async fn attempt(&self, seen: &mut Option<Seen>) -> Result<Option<Hold>, Error> {
        let (revision, is_free) = match self.table.find(&self.name).await? {
            None => (None, true),
            Some(Found::Value(holder, revision)) => (Some(revision), holder.holder.is_empty()),
            Some(Found::Unreadable(unreadable)) => (Some(unreadable.revision()), false),
        };
        let since = match seen {
            Some(seen) if seen.revision == revision => seen.since,
            _ => Instant::now(),
        };
        *seen = Some(Seen { revision, since });
        if !is_free && since.elapsed() < self.patience() {
            return Ok(None);
        }
        self.put(revision, 0).await
    }

    /// Writes our name; `None` when somebody else was faster.
    async fn put(&self, last: Option<Revision>, renewals: u64) -> Result<Option<Hold>, Error> {
        let began = Instant::now();
        let holder = Holder {
            holder: self.holder.clone(),
            renewals,
        };
        match self.table.put(&self.name, &holder, last).await {
            Ok(revision) => Ok(Some(Hold {
                revision,
                renewals,
                until: began + self.trusts(),
            })),
            Err(Error::Conflict) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs the work and renews; gives the last revision when the work ended or the process shuts down, `None` when the
    /// record is lost.
    async fn keep(
        &self,
        mut hold: Hold,
        shutdown: &CancellationToken,
        work: impl Future<Output = ()> + Send,
    ) -> Option<Revision> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Some(hold.revision),
                renewed = self.renewed(&hold) => hold = renewed?,
                () = &mut work => return Some(hold.revision),
            }
        }
    }

    /// The next renewal; `None` when it did not succeed while it was sure that nobody else begins.
    async fn renewed(&self, hold: &Hold) -> Option<Hold> {
        sleep(self.ttl / 6).await;
        while Instant::now() < hold.until {
            match timeout_at(hold.until, self.put(Some(hold.revision), hold.renewals + 1)).await {
                Ok(Ok(renewed)) => return renewed,
                Ok(Err(error)) => {
                    tracing::debug!(name = self.name, error = %chain(&error), "not renewed, trying again");
                    sleep_until(hold.until.min(Instant::now() + self.ttl / 20)).await;
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// Lets somebody else begin at once.
    async fn give_up(&self, last: Revision) {
        let nobody = Holder {
            holder: String::new(),
            renewals: 0,
        };
        if let Err(error) = self.table.put(&self.name, &nobody, Some(last)).await {
            tracing::debug!(
                name = self.name,
                error = %chain(&error),
                "not given up; others wait until it runs out"
            );
        }
    }
}
