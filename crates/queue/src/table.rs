//! Key-value buckets as typed tables with compare-and-set.

use std::{marker::PhantomData, sync::Arc};

use async_nats::HeaderMap;
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::{
    Error, Found, body,
    connection::Connection,
    subject,
    wire::{Compared, Stored},
};

const OPERATION: &str = "KV-Operation";
const DELETED: &str = "DEL";
const PURGED: &str = "PURGE";

/// The key-value buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Ticket rows, by ticket key.
    Tickets,
    /// The reporter's ledger, by effect id.
    Effects,
    /// Head branches, by `BranchRecord::key`.
    Branches,
    /// The index of our pull requests, by `PullRequestRecord::key`.
    PullRequests,
    /// Control records (stop-all …) and epochs.
    Control,
}

impl Bucket {
    pub(crate) const ALL: [Self; 5] = [
        Self::Tickets,
        Self::Effects,
        Self::Branches,
        Self::PullRequests,
        Self::Control,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tickets => "tickets",
            Self::Effects => "effects",
            Self::Branches => "branches",
            Self::PullRequests => "pull-requests",
            Self::Control => "control",
        }
    }
}

pub(crate) fn stream_of(bucket: &str) -> String {
    format!("KV_{bucket}")
}

pub(crate) fn prefix_of(bucket: &str) -> String {
    format!("$KV.{bucket}")
}

/// The revision a value was read at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// Typed view of one bucket. Cheap to clone.
pub struct Table<V> {
    connection: Arc<Connection>,
    stream: String,
    prefix: String,
    value: PhantomData<fn() -> V>,
}

impl<V> Clone for Table<V> {
    fn clone(&self) -> Self {
        Self {
            connection: self.connection.clone(),
            stream: self.stream.clone(),
            prefix: self.prefix.clone(),
            value: PhantomData,
        }
    }
}

impl<V: Serialize + DeserializeOwned + Send + Sync> Table<V> {
    pub(crate) fn new(connection: Arc<Connection>, bucket: Bucket) -> Self {
        Self {
            connection,
            stream: stream_of(bucket.name()),
            prefix: prefix_of(bucket.name()),
            value: PhantomData,
        }
    }

    /// The value of a key, read from the leader. Any text is a legal key.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the value is not a `V`.
    pub async fn get(&self, key: &str) -> Result<Option<(V, Revision)>, Error> {
        match self.find(key).await? {
            Some(Found::Value(value, revision)) => Ok(Some((value, revision))),
            Some(Found::Unreadable(unreadable)) => Err(Error::corrupt(key, unreadable.problem())),
            None => Ok(None),
        }
    }

    /// The same for somebody who knows what to do about a value that is not a `V`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn find(&self, key: &str) -> Result<Option<Found<V>>, Error> {
        let subject = subject::under(&self.prefix, key);
        let last = self.connection.last(&self.stream, &subject);
        let last = failpoint::around_kind("queue.table.get", &self.stream, last).await?;
        let Some(stored) = last.filter(|stored| !is_tombstone(stored)) else {
            return Ok(None);
        };
        let revision = Revision(stored.sequence);
        let read = body::record_or_bytes(&self.connection.objects(), &self.stream, stored).await?;
        Ok(Some(match read {
            Ok(value) => Found::Value(value, revision),
            Err(unreadable) => Found::Unreadable(unreadable),
        }))
    }

    /// Compare-and-set: `None` creates.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the revision is not the last; [`Error::Unavailable`].
    pub async fn put(&self, key: &str, value: &V, last: Option<Revision>) -> Result<Revision, Error> {
        let subject = subject::under(&self.prefix, key);
        let mut headers = HeaderMap::new();
        let payload = body::encode(&subject, value)?.into();
        let payload = body::pack(&self.connection.objects(), &mut headers, payload).await?;
        let nonce = Uuid::new_v4().to_string();
        let mut expected = last.map_or(0, |Revision(sequence)| sequence);
        for _ in 0..3 {
            let written = self.connection.compare_and_publish(
                &self.stream,
                &subject,
                expected,
                &nonce,
                headers.clone(),
                payload.clone(),
            );
            let outcome = failpoint::around_kind("queue.table.put", &self.stream, written).await?;
            match outcome {
                Compared::Written(sequence) => return Ok(Revision(sequence)),
                // A deleted key may be created again, after its tombstone.
                Compared::Lost(Some(stored)) if last.is_none() && is_tombstone(&stored) => {
                    expected = stored.sequence;
                }
                Compared::Lost(_) => return Err(Error::Conflict),
            }
        }
        Err(Error::Conflict)
    }

    /// Removes a key, whatever its revision; a missing key is a success.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, DELETED);
        self.connection
            .publish(&subject::under(&self.prefix, key), headers, Bytes::new())
            .await?;
        Ok(())
    }

    /// The values that were written after a revision, oldest first, and the revision to ask with the next time; one that
    /// cannot be read is left out, as in [`Self::list`], and so is what was removed. Costs as much as what changed.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn changes_after(&self, after: Revision) -> Result<(Vec<V>, Revision), Error> {
        let subject = format!("{}.>", self.prefix);
        let changed = self.connection.range(&self.stream, &subject, after.0);
        let changed = failpoint::around_kind("queue.table.list", &self.stream, changed).await?;
        let (mut values, mut newest) = (Vec::new(), after);
        for stored in changed {
            newest = newest.max(Revision(stored.sequence));
            if is_tombstone(&stored) {
                continue;
            }
            match body::record_or_bytes(&self.connection.objects(), &self.stream, stored).await? {
                Ok(value) => values.push(value),
                Err(unreadable) => {
                    tracing::error!(problem = unreadable.problem(), "value left out");
                }
            }
        }
        Ok((values, newest))
    }

    /// Every key with its value. One that cannot be read is left out, so that it does not hide the others, and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self) -> Result<Vec<(String, V)>, Error> {
        let subject = format!("{}.>", self.prefix);
        let all = self.connection.range(&self.stream, &subject, 0);
        let all = failpoint::around_kind("queue.table.list", &self.stream, all).await?;
        let mut listed = Vec::with_capacity(all.len());
        for stored in all.into_iter().filter(|stored| !is_tombstone(stored)) {
            let Some(key) = subject::text_of(&self.prefix, &stored.subject) else {
                tracing::error!(subject = stored.subject, "key is not encoded; left out");
                continue;
            };
            let read = body::record_or_bytes(&self.connection.objects(), &self.stream, stored).await?;
            match read {
                Ok(value) => listed.push((key, value)),
                Err(unreadable) => {
                    tracing::error!(key, problem = unreadable.problem(), "value left out");
                }
            }
        }
        Ok(listed)
    }
}

fn is_tombstone(stored: &Stored) -> bool {
    stored
        .headers
        .get(OPERATION)
        .is_some_and(|operation| matches!(operation.as_str(), DELETED | PURGED))
}
