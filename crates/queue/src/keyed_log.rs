//! Keyed log: records by ticket and semantic key, and at most one outstanding wake-up token per ticket.

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc, time::Duration};

use async_nats::HeaderMap;
use bytes::Bytes;
use domain::TicketKey;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{
    body,
    connection::NatsConnection,
    error::Error,
    names::LogNames,
    objects::ContentStore,
    token::{KeyedRecord, TokenSource},
    trace,
    unreadable_record::UnreadableRecord,
    watch::LogWatch,
    wire::{self, CompareOutcome, PublishRefusal, PublishTarget, StoredMessage},
};

// Header of a token: the sequence of the newest record that its publisher knew.
const COVERED: &str = "Journeyman-Covers";
// Pauses after a refused token. With three servers the removal of an acknowledged token is replicated after
// the acknowledgement is answered: usually within 2 ms.
const WAKE_PAUSES: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
];

/// Headers of a token that covers the records up to a sequence.
pub(crate) fn build_covering_headers(sequence: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(COVERED, sequence.to_string());
    headers
}

/// Result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The record was stored at this sequence.
    New(u64),
    /// The key existed already, at this sequence.
    Known(u64),
}

/// Log by ticket and semantic key, with at most one outstanding wake-up token per ticket. Cheap to clone.
pub struct KeyedLog<T> {
    pub(crate) connection: Arc<NatsConnection>,
    pub(crate) names: &'static LogNames,
    record: PhantomData<fn() -> T>,
}

impl<T> Clone for KeyedLog<T> {
    fn clone(&self) -> Self {
        Self {
            connection: self.connection.clone(),
            names: self.names,
            record: PhantomData,
        }
    }
}

impl<T: KeyedRecord> KeyedLog<T> {
    pub(crate) fn new(connection: Arc<NatsConnection>, names: &'static LogNames) -> Self {
        Self {
            connection,
            names,
            record: PhantomData,
        }
    }

    /// Appends a record, once per ticket and key while the stream keeps the first one. Safe to repeat.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three attempts; the record may or may not be stored then.
    pub async fn append(&self, record: &T) -> Result<AppendOutcome, Error> {
        let span = self.publishing(record.ticket()).await;
        self.append_record(record).instrument(span).await
    }

    /// Span under which a record of the ticket is published, in the ticket's trace.
    async fn publishing(&self, ticket: &TicketKey) -> tracing::Span {
        let name = format!("publish {}", self.names.stream);
        let span = tracing::info_span!("publish", otel.name = name, otel.kind = "producer", %ticket);
        if trace::is_traced(&span) {
            let first = trace::first_origin(&self.connection, self.names, ticket).await;
            trace::join_ticket_trace(&span, &trace::read_current_context(), &first);
        }
        span
    }

    async fn append_record(&self, record: &T) -> Result<AppendOutcome, Error> {
        let subject = self.names.record(record.ticket(), record.key());
        let mut headers = HeaderMap::new();
        let payload = body::encode_record(&subject, record)?.into();
        let payload = body::pack_body(&self.objects(), &mut headers, payload).await?;
        let nonce = wire::create_nonce();
        let stream = self.names.stream;
        let target = PublishTarget::own(stream, &subject);
        // Expected sequence 0: the subject contains the key's hash, so the server refuses a second record of
        // the key.
        let written = self
            .connection
            .compare_and_publish(&target, 0, &nonce, headers, payload);
        let outcome = failpoint::around_kind("queue.log.append", stream, written).await?;
        match outcome {
            CompareOutcome::Written(sequence) => Ok(AppendOutcome::New(sequence)),
            CompareOutcome::Lost(Some(stored)) => Ok(AppendOutcome::Known(stored.sequence)),
            CompareOutcome::Lost(None) => Err(Error::unavailable(
                format!("append to {}", self.names.stream),
                "not settled",
            )),
        }
    }

    /// Reads the ticket's records after `cursor`, an exclusive stream sequence, oldest first. Includes at
    /// least all records that were acknowledged before the call.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when a record is not a `T`.
    pub async fn read_after(&self, ticket: &TicketKey, cursor: u64) -> Result<Vec<(u64, T)>, Error> {
        let records = self.read_each_after(ticket, cursor).await?;
        records
            .into_iter()
            .map(|(sequence, record)| Ok((sequence, record?)))
            .collect()
    }

    /// Reads like [`Self::read_after`], with an [`UnreadableRecord`] for each record that is not a `T`, so that one
    /// does not hide the others.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn read_each_after(
        &self,
        ticket: &TicketKey,
        cursor: u64,
    ) -> Result<Vec<(u64, Result<T, UnreadableRecord>)>, Error> {
        let found = self.range(&self.names.records_of(ticket), cursor, false).await?;
        self.decode_each(found).await
    }

    /// Reads like [`Self::read_each_after`], for the holder of the ticket's token: there is a record nearly always,
    /// and then a single server answers one request.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn read_expected_after(
        &self,
        ticket: &TicketKey,
        cursor: u64,
    ) -> Result<Vec<(u64, Result<T, UnreadableRecord>)>, Error> {
        let found = self.range(&self.names.records_of(ticket), cursor, true).await?;
        self.decode_each(found).await
    }

    async fn decode_each(
        &self,
        found: Vec<StoredMessage>,
    ) -> Result<Vec<(u64, Result<T, UnreadableRecord>)>, Error> {
        let mut records = Vec::with_capacity(found.len());
        for stored in found {
            let sequence = stored.sequence;
            let (objects, stream) = (self.objects(), self.names.stream);
            records.push((
                sequence,
                body::read_record_or_bytes(&objects, stream, stored).await?,
            ));
        }
        Ok(records)
    }

    /// Stream sequence of the ticket's last record, in one request.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn last_sequence(&self, ticket: &TicketKey) -> Result<Option<u64>, Error> {
        self.last(&self.names.records_of(ticket)).await
    }

    /// Stream sequence of the ticket's record under a semantic key, in one request; `None` when it is not
    /// stored.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn sequence_of(&self, ticket: &TicketKey, key: &str) -> Result<Option<u64>, Error> {
        self.last(&self.names.record(ticket, key)).await
    }

    async fn last(&self, subject: &str) -> Result<Option<u64>, Error> {
        let last = self.connection.last(self.names.stream, subject);
        let last = failpoint::around_kind("queue.log.last", self.names.stream, last).await?;
        Ok(last.map(|stored| stored.sequence))
    }

    /// Publishes the ticket's token without a record to cover. An outstanding token counts as success. For
    /// records use [`KeyedLog::wake_beyond`].
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn wake(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.token(ticket, HeaderMap::new()).await.map(drop)
    }

    /// Publishes the ticket's token for the record at a sequence, after the caller finished an older token.
    ///
    /// The older token may still be stored for a moment although its acknowledgement was answered. So a
    /// refusal counts as success only if the outstanding token covers the record. The waker holds the record
    /// meanwhile, so this call only saves time.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn wake_beyond(&self, ticket: &TicketKey, sequence: u64) -> Result<(), Error> {
        for pause in WAKE_PAUSES {
            if self.token(ticket, build_covering_headers(sequence)).await?
                || self.covered(ticket).await? >= sequence
            {
                return Ok(());
            }
            sleep(pause).await;
        }
        tracing::debug!(%ticket, sequence, "the token is still outstanding; the waker continues");
        Ok(())
    }

    /// Newest record that the publisher of the ticket's outstanding token knew, as a sequence; 0 without a
    /// token.
    pub(crate) async fn covered(&self, ticket: &TicketKey) -> Result<u64, Error> {
        let last = self
            .connection
            .last(self.names.wakeups, &self.names.token(ticket))
            .await?;
        let covered = last.as_ref().and_then(|token| token.headers.get(COVERED));
        Ok(covered
            .and_then(|sequence| sequence.as_str().parse().ok())
            .unwrap_or_default())
    }

    /// Publishes like [`Self::wake`]. Returns true when no token was outstanding, so that one had been lost.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn rewake(&self, ticket: &TicketKey) -> Result<bool, Error> {
        self.token(ticket, HeaderMap::new()).await
    }

    /// Tickets and sequences of the records after `after`, oldest first, and the sequence for the next call.
    /// The cost depends on the number of new records.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn appended_after(&self, after: u64) -> Result<(Vec<(TicketKey, u64)>, u64), Error> {
        let subject = self.names.records();
        let appended = self.range(&subject, after, false).await?;
        // Also past a record whose subject names no ticket, so that the next call does not read it
        // again.
        let newest = appended.last().map_or(after, |stored| stored.sequence);
        let of_ticket =
            |stored: &StoredMessage| Some((self.names.ticket_of_record(&stored.subject)?, stored.sequence));
        Ok((appended.iter().filter_map(of_ticket).collect(), newest))
    }

    /// Stream sequence of the last record of any ticket.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn newest(&self) -> Result<Option<u64>, Error> {
        self.last(&self.names.records()).await
    }

    /// Tickets with a record in the log.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn tickets(&self) -> Result<BTreeSet<TicketKey>, Error> {
        let subjects = self
            .connection
            .subjects(self.names.stream, &self.names.records())
            .await?;
        let ticket = |subject: &String| self.names.ticket_of_record(subject);
        Ok(subjects.iter().filter_map(ticket).collect())
    }

    /// Publishes the ticket's token; returns false when one is outstanding.
    pub(crate) async fn token(&self, ticket: &TicketKey, headers: HeaderMap) -> Result<bool, Error> {
        // One subject per ticket in a stream that keeps one message per subject: the server itself makes
        // the token a mutex.
        let subject = self.names.token(ticket);
        let published = self.connection.publish(&subject, headers, Bytes::new());
        match failpoint::around_kind("queue.token.publish", self.names.wakeups, published).await {
            Ok(_) => Ok(true),
            Err(PublishRefusal::SubjectFull) => Ok(false),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Opens a source of tokens, which ends at shutdown.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the consumer cannot be reached.
    pub async fn tokens(&self, shutdown: CancellationToken) -> Result<TokenSource<T>, Error> {
        TokenSource::open(self.connection.clone(), self.names, shutdown).await
    }

    /// Watches the log of one ticket for appends. Notifications may be lost or repeated, so read the log
    /// after each.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn watch(&self, ticket: &TicketKey) -> Result<LogWatch, Error> {
        LogWatch::open(
            self.connection.clone(),
            self.names.stream,
            self.names.records_of(ticket),
        )
        .await
    }

    async fn range(&self, subject: &str, after: u64, is_expected: bool) -> Result<Vec<StoredMessage>, Error> {
        let (connection, stream) = (&self.connection, self.names.stream);
        let range = async {
            if is_expected {
                connection.expected_range(stream, subject, after).await
            } else {
                connection.range(stream, subject, after).await
            }
        };
        let range = failpoint::around_kind("queue.log.read_each", stream, range).await?;
        Ok(range.messages)
    }

    fn objects(&self) -> ContentStore {
        ContentStore::new(self.connection.clone())
    }
}
