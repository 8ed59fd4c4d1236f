//! Notifications by core NATS, which stores nothing: appends to one ticket's log or one run's journal, for a worker
//! that holds the ticket and for followers of the run, and live output of running tools, for current viewers. A slow
//! viewer misses parts.

use std::{sync::Arc, time::Duration};

use async_nats::{Subscriber, header};
use domain::{ErrorCause, LiveOutput, RunId};
use futures::{FutureExt as _, StreamExt as _, future, stream::BoxStream};
use tokio::time::{sleep, timeout};

use crate::{connection::NatsConnection, error::Error, names, wire::StoredMessage};

// Core NATS delivers at most once. A lost notification is noticed after this time.
const RECHECK_AFTER: Duration = Duration::from_secs(15);
// Quick reads after a notification until the stream has stored its record: 0.2 s. A single server needs less than a
// millisecond, three servers need some.
const QUICK_READS: u32 = 24;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
// Further reads for a record that servers under load store late. After 15 s the append was refused, or the check after a
// long silence finds the record.
const LATE_READS: u32 = 60;
const LATE_PAUSE: Duration = Duration::from_millis(250);

/// Notifications of appends to one ticket's log, or to one run's journal.
pub struct LogWatch {
    connection: Arc<NatsConnection>,
    stream: &'static str,
    subject: String,
    subscriber: Subscriber,
    seen: u64,
    /// Notification whose record no read has returned yet. Later ones stay in the subscription meanwhile.
    notified: Option<NotifiedRecord>,
    /// True if the log may have grown without a notification since it was read last.
    is_due: bool,
}

/// Record of a notification, which the stream may not have stored yet.
struct NotifiedRecord {
    subject: String,
    /// Stream sequence that the record follows under its subject.
    after: u64,
    /// Number of reads that did not return the record.
    reads: u32,
    /// Number of reads after which the record counts as refused.
    most_reads: u32,
}

impl NotifiedRecord {
    /// Describes the record of a message; `seen` is the sequence of the last known record of the log.
    fn new(message: &async_nats::Message, seen: u64) -> Self {
        let expected = message
            .headers
            .as_ref()
            .and_then(|headers| headers.get(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE))
            .and_then(|sequence| sequence.as_str().parse().ok());
        // The later messages of a chain name no sequence. A record that is known already is not newer than `seen`, so
        // only the quick reads wait for it.
        let (after, most_reads) = match expected {
            Some(expected) => (expected, QUICK_READS + LATE_READS),
            None => (seen, QUICK_READS),
        };
        Self {
            subject: message.subject.to_string(),
            after,
            reads: 0,
            most_reads,
        }
    }

    /// Returns true if a stored message is the record, or a later one of its subject.
    fn is_stored_with(&self, stored: &StoredMessage) -> bool {
        stored.subject == self.subject && stored.sequence > self.after
    }

    /// Counts a read without the record, and returns the pause before the next one; `None` after the last read.
    fn count_read(&mut self) -> Option<Duration> {
        let pause = if self.reads < QUICK_READS {
            (SHORTEST_PAUSE * (1_u32 << self.reads.min(4))).min(LONGEST_PAUSE)
        } else {
            LATE_PAUSE
        };
        self.reads += 1;
        (self.reads <= self.most_reads).then_some(pause)
    }
}

impl LogWatch {
    pub(crate) async fn open(
        connection: Arc<NatsConnection>,
        stream: &'static str,
        subject: String,
    ) -> Result<Self, Error> {
        let failed = |cause: ErrorCause| Error::unavailable(format!("watch {stream}"), cause);
        let subscriber = connection
            .client
            .subscribe(subject.clone())
            .await
            .map_err(|error| failed(error.into()))?;
        // The server has the subscription before the last sequence is read, so an append in between is not
        // missed.
        connection
            .client
            .flush()
            .await
            .map_err(|error| failed(error.into()))?;
        let last = connection.last(stream, &subject);
        let seen = failpoint::around("queue.log.watch", last)
            .await?
            .map_or(0, |last| last.sequence);
        Ok(Self {
            connection,
            stream,
            subject,
            subscriber,
            seen,
            notified: None,
            is_due: false,
        })
    }

    /// Stream sequence of the last known record; 0 without one.
    pub(crate) const fn last_sequence(&self) -> u64 {
        self.seen
    }

    /// Returns true if the server notified of an append that [`Self::changed`] did not report, or if notifications
    /// have ended.
    pub fn has_news(&mut self) -> bool {
        // Taken from the subscription, so it is kept for the next call of `changed`.
        if self.notified.is_none() {
            match self.subscriber.next().now_or_never() {
                Some(Some(message)) => self.notified = Some(NotifiedRecord::new(&message, self.seen)),
                Some(None) => self.is_due = true,
                None => {}
            }
        }
        self.is_due || self.notified.is_some()
    }

    /// Waits for the next append to the log. Cancel-safe.
    pub async fn changed(&mut self) {
        loop {
            // Only after a notification or a long silence: most waits of a worker end with the work.
            if self.is_due || self.notified.is_some() {
                let has_grown = self.read_growth().await;
                self.is_due = false;
                if has_grown {
                    return;
                }
            }
            // The subscription receives a message before the stream has stored it.
            if let Some(notified) = &mut self.notified {
                match notified.count_read() {
                    Some(pause) => sleep(pause).await,
                    None => self.notified = None,
                }
                continue;
            }
            // Each outcome is kept before the next await, so that a cancellation loses no notification.
            match timeout(RECHECK_AFTER, self.subscriber.next()).await {
                Ok(Some(message)) => self.notified = Some(NotifiedRecord::new(&message, self.seen)),
                // The subscription has ended for good, with the connection.
                Ok(None) => {
                    self.is_due = true;
                    sleep(RECHECK_AFTER).await;
                }
                Err(_) => self.is_due = true,
            }
        }
    }

    /// Reads the last record, and the notified one if it has another subject. Returns true when one of them is newer
    /// than the last known record, and keeps its sequence.
    async fn read_growth(&mut self) -> bool {
        let Ok(Some(last)) = self.connection.last(self.stream, &self.subject).await else {
            return false;
        };
        let mut newest = last.sequence;
        let mut is_stored = self
            .notified
            .as_ref()
            .is_some_and(|notified| notified.is_stored_with(&last));
        // Another record may be the last one, whether the notified one is stored or not.
        if let Some(notified) = &self.notified
            && notified.subject != last.subject
            && let Ok(Some(own)) = self.connection.last(self.stream, &notified.subject).await
        {
            is_stored = notified.is_stored_with(&own);
            // The record may have been stored since the first read.
            newest = newest.max(own.sequence);
        }
        // No await follows, so a cancellation loses neither the growth nor the notification.
        if is_stored {
            self.notified = None;
        }
        let has_grown = newest > self.seen;
        self.seen = self.seen.max(newest);
        has_grown
    }
}

/// Live output of runs. Cheap to clone.
#[derive(Clone)]
pub struct LiveChannel {
    connection: Arc<NatsConnection>,
}

impl LiveChannel {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    /// Publishes output to the current viewers of the run.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the output is lost then.
    pub async fn publish(&self, run: &RunId, output: &LiveOutput) -> Result<(), Error> {
        let subject = names::build_live_subject(run);
        let body = serde_json::to_vec(output).map_err(|error| Error::corrupt(&subject, error))?;
        // Core NATS and not `JetStream`: the journal has the result of the tool, so no server needs to
        // store its output.
        let published = self.connection.client.publish(subject, body.into()).await;
        published.map_err(|error| Error::unavailable("publish live output", error))
    }

    /// Subscribes to the output of a run from now on. Unreadable messages are omitted.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn follow(&self, run: &RunId) -> Result<BoxStream<'static, LiveOutput>, Error> {
        let messages = self
            .connection
            .client
            .subscribe(names::build_live_subject(run))
            .await;
        let messages = messages.map_err(|error| Error::unavailable("follow live output", error))?;
        let outputs = messages
            .filter_map(|message| future::ready(serde_json::from_slice::<LiveOutput>(&message.payload).ok()));
        Ok(outputs.boxed())
    }
}
