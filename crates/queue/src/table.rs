//! Typed tables with compare-and-set over key-value buckets.

use std::{marker::PhantomData, sync::Arc};

use async_nats::HeaderMap;
use bytes::Bytes;
use domain::StoredRecord;

use crate::{
    body,
    connection::NatsConnection,
    error::Error,
    names::{KeyValueBucket, RecordKey},
    objects::ContentStore,
    unreadable_record::{FoundValue, TableRevision},
    wire::{self, CompareOutcome, MessageRange, PublishTarget},
};

const OPERATION: &str = "KV-Operation";
const DELETED: &str = "DEL";
const PURGED: &str = "PURGE";

/// Typed view of one bucket. Cheap to clone.
pub struct TypedTable<V> {
    connection: Arc<NatsConnection>,
    bucket: KeyValueBucket,
    stream: String,
    value: PhantomData<fn() -> V>,
}

/// Size of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketExtent {
    /// Number of keys, including those of removed values.
    pub(crate) keys: u64,
    /// Last revision.
    pub(crate) last: TableRevision,
}

/// Changes of a bucket, by key.
#[derive(Debug)]
pub(crate) struct KeyedChanges<V> {
    /// Keys that were written or removed, oldest first. The value is `None` if it was removed or is unreadable.
    pub(crate) values: Vec<(RecordKey, Option<V>)>,
    /// Subjects that are not keys.
    pub(crate) foreign: Vec<String>,
    /// Revision for the next call.
    pub(crate) revision: TableRevision,
}

impl<V> Clone for TypedTable<V> {
    fn clone(&self) -> Self {
        Self {
            connection: self.connection.clone(),
            bucket: self.bucket,
            stream: self.stream.clone(),
            value: PhantomData,
        }
    }
}

impl<V: StoredRecord + Send + Sync> TypedTable<V> {
    pub(crate) fn new(connection: Arc<NatsConnection>, bucket: KeyValueBucket) -> Self {
        Self {
            connection,
            bucket,
            stream: bucket.stream(),
            value: PhantomData,
        }
    }

    /// Value and revision of a key, read from the leader. Any text is a valid key.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the value is not a `V`.
    pub async fn get(&self, key: impl Into<RecordKey>) -> Result<Option<(V, TableRevision)>, Error> {
        self.get_last(&self.bucket.subject(&key.into())).await
    }

    /// Last written value under a filter, like [`Self::get`].
    pub(crate) async fn get_last(&self, filter: &str) -> Result<Option<(V, TableRevision)>, Error> {
        require_readable(self.find_last(filter).await?)
    }

    /// Value and revision of a key if the leader has a newer one than a known revision.
    ///
    /// The answer without a newer value is short, so a caller that keeps a copy of a long value spends little.
    /// `None` also for a value that was removed, or that a restored bucket has at an older revision.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub async fn get_newer(
        &self,
        key: impl Into<RecordKey>,
        known: TableRevision,
    ) -> Result<Option<(V, TableRevision)>, Error> {
        let subject = self.bucket.subject(&key.into());
        // A bucket keeps one message of each key, so the first one after the revision is the last one.
        let from = known.0.saturating_add(1);
        let newer = self.connection.first(&self.stream, &subject, from).await?;
        require_readable(self.read_found(newer).await?)
    }

    /// Content of a key, for callers that can handle a value that is not a `V`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn find(&self, key: impl Into<RecordKey>) -> Result<Option<FoundValue<V>>, Error> {
        self.find_last(&self.bucket.subject(&key.into())).await
    }

    /// Last written value under a filter.
    pub(crate) async fn find_last(&self, filter: &str) -> Result<Option<FoundValue<V>>, Error> {
        let last = self.connection.last(&self.stream, filter);
        let last = failpoint::around_kind("queue.table.get", &self.stream, last).await?;
        self.read_found(last).await
    }

    /// Content of a stored message; `None` for that of a removed value.
    async fn read_found(&self, found: Option<wire::StoredMessage>) -> Result<Option<FoundValue<V>>, Error> {
        let Some(stored) = found.filter(|stored| !is_tombstone(stored)) else {
            return Ok(None);
        };
        let revision = TableRevision(stored.sequence);
        let read = body::read_record_or_bytes(&self.objects(), &self.stream, stored).await?;
        Ok(Some(match read {
            Ok(value) => FoundValue::Value(value, revision),
            Err(unreadable) => FoundValue::Unreadable(unreadable),
        }))
    }

    /// Compare-and-set: `None` creates.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the revision is not the last; [`Error::Unavailable`].
    pub async fn put(
        &self,
        key: impl Into<RecordKey>,
        value: &V,
        last: Option<TableRevision>,
    ) -> Result<TableRevision, Error> {
        let subject = self.bucket.subject(&key.into());
        self.put_last(&subject, &subject, value, last).await
    }

    /// Compare-and-set against the last message under a filter.
    pub(crate) async fn put_last(
        &self,
        subject: &str,
        filter: &str,
        value: &V,
        last: Option<TableRevision>,
    ) -> Result<TableRevision, Error> {
        let mut headers = HeaderMap::new();
        let payload = body::encode_record(subject, value)?.into();
        let payload = body::pack_body(&self.objects(), &mut headers, payload).await?;
        let nonce = wire::create_nonce();
        let target = PublishTarget {
            stream: &self.stream,
            subject,
            filter,
        };
        let mut expected = last.map_or(0, |TableRevision(sequence)| sequence);
        // Another process may create and delete the key again between two attempts.
        for _ in 0..3 {
            let (headers, payload) = (headers.clone(), payload.clone());
            let written = self
                .connection
                .compare_and_publish(&target, expected, &nonce, headers, payload);
            let outcome = failpoint::around_kind("queue.table.put", &self.stream, written).await?;
            match outcome {
                CompareOutcome::Written(sequence) => return Ok(TableRevision(sequence)),
                // A deleted key can be created again, on top of its tombstone.
                CompareOutcome::Lost(Some(stored)) if last.is_none() && is_tombstone(&stored) => {
                    expected = stored.sequence;
                }
                CompareOutcome::Lost(_) => return Err(Error::Conflict),
            }
        }
        Err(Error::Conflict)
    }

    /// Removes a key at any revision; a missing key is a success. Only for a record that no other process may
    /// have written since; [`Self::delete_at`] is for the others.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn delete(&self, key: impl Into<RecordKey>) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, DELETED);
        self.connection
            .publish(&self.bucket.subject(&key.into()), headers, Bytes::new())
            .await?;
        Ok(())
    }

    /// Compare-and-delete: removes a key if it still has this revision.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the key has another revision or is missing; [`Error::Unavailable`].
    pub async fn delete_at(&self, key: impl Into<RecordKey>, last: TableRevision) -> Result<(), Error> {
        let subject = self.bucket.subject(&key.into());
        self.delete_last(&subject, &subject, last).await
    }

    /// Compare-and-delete against the last message under a filter.
    pub(crate) async fn delete_last(
        &self,
        subject: &str,
        filter: &str,
        last: TableRevision,
    ) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, DELETED);
        let nonce = wire::create_nonce();
        let target = PublishTarget {
            stream: &self.stream,
            subject,
            filter,
        };
        let deleted = self
            .connection
            .compare_and_publish(&target, last.0, &nonce, headers, Bytes::new());
        match deleted.await? {
            CompareOutcome::Written(_) => Ok(()),
            CompareOutcome::Lost(_) => Err(Error::Conflict),
        }
    }

    /// Values that were written after a revision, oldest first, and the revision for the next call.
    ///
    /// Removed values are omitted, and so are unreadable ones, as in [`Self::list`]. The cost depends on the
    /// number of changes. All values are read again when the last one has an older revision: then the bucket was
    /// created again, or the last values were purged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn changes_after(&self, after: TableRevision) -> Result<(Vec<V>, TableRevision), Error> {
        self.changes_under(&self.bucket.all(), after).await
    }

    /// Reads like [`Self::changes_after`], under a filter.
    pub(crate) async fn changes_under(
        &self,
        filter: &str,
        after: TableRevision,
    ) -> Result<(Vec<V>, TableRevision), Error> {
        let mut changed = self.range(filter, after.0).await?;
        if changed.last < after.0 {
            changed = self.range(filter, 0).await?;
        }
        let (mut values, mut newest) = (Vec::new(), TableRevision(changed.last));
        for stored in changed.messages {
            newest = newest.max(TableRevision(stored.sequence));
            if is_tombstone(&stored) {
                continue;
            }
            match body::read_record_or_bytes(&self.objects(), &self.stream, stored).await? {
                Ok(value) => values.push(value),
                Err(unreadable) => {
                    tracing::error!(problem = unreadable.problem(), "value left out");
                }
            }
        }
        Ok((values, newest))
    }

    /// Size of the bucket, from the leader.
    pub(crate) async fn extent(&self) -> Result<BucketExtent, Error> {
        let state = self.connection.stream_info(&self.stream).await?.state;
        Ok(BucketExtent {
            keys: state.messages,
            last: TableRevision(state.last_sequence),
        })
    }

    /// Keys that were written or removed after a revision. Unreadable values and subjects that are not keys are
    /// logged.
    pub(crate) async fn keyed_changes_after(&self, after: TableRevision) -> Result<KeyedChanges<V>, Error> {
        let changed = self.range(&self.bucket.all(), after.0).await?.messages;
        let mut changes = KeyedChanges {
            values: Vec::with_capacity(changed.len()),
            foreign: Vec::new(),
            revision: after,
        };
        for stored in changed {
            changes.revision = changes.revision.max(TableRevision(stored.sequence));
            let Some(key) = self.bucket.key_of(&stored.subject) else {
                tracing::error!(subject = stored.subject, "key is not encoded; left out");
                changes.foreign.push(stored.subject);
                continue;
            };
            changes.values.push((key, self.change(stored).await?));
        }
        Ok(changes)
    }

    async fn change(&self, stored: wire::StoredMessage) -> Result<Option<V>, Error> {
        if is_tombstone(&stored) {
            return Ok(None);
        }
        let read = body::read_record_or_bytes(&self.objects(), &self.stream, stored).await?;
        Ok(read
            .inspect_err(|unreadable| tracing::error!(problem = unreadable.problem(), "value left out"))
            .ok())
    }

    /// All keys with their values. Unreadable values are omitted, so that one does not hide the others, and
    /// logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self) -> Result<Vec<(RecordKey, V)>, Error> {
        self.list_under(&self.bucket.all()).await
    }

    /// Keys of two parts whose second part is `name`, with their values.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list_named(&self, name: &str) -> Result<Vec<(RecordKey, V)>, Error> {
        self.list_under(&self.bucket.named(name)).await
    }

    /// Reads like [`Self::list`], under a filter.
    pub(crate) async fn list_under(&self, filter: &str) -> Result<Vec<(RecordKey, V)>, Error> {
        let all = self.range(filter, 0).await?.messages;
        let mut listed = Vec::with_capacity(all.len());
        for stored in all.into_iter().filter(|stored| !is_tombstone(stored)) {
            let Some(key) = self.bucket.key_of(&stored.subject) else {
                tracing::error!(subject = stored.subject, "key is not encoded; left out");
                continue;
            };
            match body::read_record_or_bytes(&self.objects(), &self.stream, stored).await? {
                Ok(value) => listed.push((key, value)),
                Err(unreadable) => {
                    tracing::error!(%key, problem = unreadable.problem(), "value left out");
                }
            }
        }
        Ok(listed)
    }

    async fn range(&self, filter: &str, after: u64) -> Result<MessageRange, Error> {
        let range = self.connection.range(&self.stream, filter, after);
        failpoint::around_kind("queue.table.list", &self.stream, range).await
    }

    fn objects(&self) -> ContentStore {
        ContentStore::new(self.connection.clone())
    }
}

fn require_readable<V>(found: Option<FoundValue<V>>) -> Result<Option<(V, TableRevision)>, Error> {
    match found {
        Some(FoundValue::Value(value, revision)) => Ok(Some((value, revision))),
        Some(FoundValue::Unreadable(unreadable)) => Err(unreadable.into()),
        None => Ok(None),
    }
}

fn is_tombstone(stored: &wire::StoredMessage) -> bool {
    stored
        .headers
        .get(OPERATION)
        .is_some_and(|operation| matches!(operation.as_str(), DELETED | PURGED))
}
