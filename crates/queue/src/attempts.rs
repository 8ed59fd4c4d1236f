//! Attempts at messages whose handler may crash the process, counted across restarts.

use domain::{RecordKind, StoredRecord};
use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    table::TypedTable,
    unreadable_record::{FoundValue, TableRevision},
};

// A message is dead-lettered after this many attempts that ended without a result of the handler.
pub(crate) const MOST_CRASHES: u32 = 5;

/// Number of attempts since the handler last returned a result for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptRecord {
    begun: u32,
}

impl StoredRecord for AttemptRecord {
    const KIND: RecordKind = RecordKind::Control;
}

/// State of a message before it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptState {
    /// The message may be handled.
    Open,
    /// Each of [`MOST_CRASHES`] attempts ended the process or panicked.
    Exhausted,
}

/// Attempts at the messages of one stream. The server counts deliveries, so only a message that is
/// redelivered needs a record.
pub(crate) struct AttemptCounter {
    table: TypedTable<AttemptRecord>,
    stream: &'static str,
}

impl AttemptCounter {
    pub(crate) const fn new(table: TypedTable<AttemptRecord>, stream: &'static str) -> Self {
        Self { table, stream }
    }

    fn key(&self, sequence: u64) -> String {
        format!("attempts:{}:{sequence}", self.stream)
    }

    /// Counts an attempt before it begins.
    pub(crate) async fn begin(&self, sequence: u64, delivered: u64) -> Result<AttemptState, Error> {
        if delivered <= 1 {
            return Ok(AttemptState::Open);
        }
        let (begun, last) = self.read(sequence).await?;
        // Without a record, only the first delivery was not counted.
        let begun = begun.unwrap_or(1);
        if begun >= MOST_CRASHES {
            return Ok(AttemptState::Exhausted);
        }
        self.write(sequence, begun + 1, last).await?;
        Ok(AttemptState::Open)
    }

    /// Resets the count: the handler asked for a later redelivery, so it did not crash.
    pub(crate) async fn reset(&self, sequence: u64) -> Result<(), Error> {
        let (begun, last) = self.read(sequence).await?;
        match begun {
            Some(0) => Ok(()),
            Some(_) | None => self.write(sequence, 0, last).await,
        }
    }

    /// Deletes the record of a message that is finished.
    // A tombstone stays. The server removes it after a time (per-message TTL) only in a stream with `allow_msg_ttl`, which
    // the topology does not set, and a purge is a right of the reporter alone.
    pub(crate) async fn forget(&self, sequence: u64, delivered: u64) -> Result<(), Error> {
        if delivered <= 1 {
            return Ok(());
        }
        self.table.delete(self.key(sequence).as_str()).await
    }

    async fn read(&self, sequence: u64) -> Result<(Option<u32>, Option<TableRevision>), Error> {
        Ok(match self.table.find(self.key(sequence).as_str()).await? {
            Some(FoundValue::Value(record, revision)) => (Some(record.begun), Some(revision)),
            Some(FoundValue::Unreadable(unreadable)) => (None, Some(unreadable.unless_newer()?.revision())),
            None => (None, None),
        })
    }

    async fn write(&self, sequence: u64, begun: u32, last: Option<TableRevision>) -> Result<(), Error> {
        let key = self.key(sequence);
        match self.table.put(key.as_str(), &AttemptRecord { begun }, last).await {
            // Another process holds the same message; its count is as good.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
