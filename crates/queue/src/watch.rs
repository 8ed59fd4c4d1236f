//! Notifications by core NATS, which stores nothing: appends to one ticket's log or one run's journal, for a worker
//! that holds the ticket and for followers of the run, and live output of running tools, for current viewers. A slow
//! viewer misses parts.

use std::{sync::Arc, time::Duration};

use async_nats::Subscriber;
use domain::{ErrorCause, LiveOutput, RunId};
use futures::{FutureExt as _, StreamExt as _, future, stream::BoxStream};
use tokio::time::{sleep, timeout};

use crate::{connection::NatsConnection, error::Error, names};

// Core NATS delivers at most once. A lost notification is noticed after this time.
const RECHECK_AFTER: Duration = Duration::from_secs(15);
// Reads after a notification until the stream has stored its message. A single server needs less than a millisecond,
// three servers need some.
const SETTLE_TRIES: u32 = 24;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Notifications of appends to one ticket's log, or to one run's journal.
pub struct LogWatch {
    connection: Arc<NatsConnection>,
    stream: &'static str,
    subject: String,
    subscriber: Subscriber,
    seen: u64,
    /// True if the log may have grown since it was read last.
    is_due: bool,
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
        self.is_due |= self.subscriber.next().now_or_never().is_some();
        self.is_due
    }

    /// Waits for the next append to the log. Cancel-safe.
    pub async fn changed(&mut self) {
        loop {
            // Only after a notification or a long silence: most waits of a worker end with the work.
            if self.is_due {
                let has_grown = self.read_growth().await;
                self.is_due = false;
                if has_grown {
                    return;
                }
            }
            let notified = timeout(RECHECK_AFTER, self.subscriber.next()).await;
            // Before the next await, so that a cancellation loses no notification.
            self.is_due = true;
            match notified {
                // The subscription receives a message before the stream has stored it.
                Ok(Some(_)) => {
                    let mut pause = SHORTEST_PAUSE;
                    for _ in 0..SETTLE_TRIES {
                        if self.read_growth().await {
                            self.is_due = false;
                            return;
                        }
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                }
                // The subscription has ended for good, with the connection.
                Ok(None) => sleep(RECHECK_AFTER).await,
                Err(_) => {}
            }
        }
    }

    /// Reads the sequence of the last record. Returns true when it is newer than the last known one, and keeps it.
    async fn read_growth(&mut self) -> bool {
        match self.connection.last(self.stream, &self.subject).await {
            Ok(Some(last)) if last.sequence > self.seen => {
                self.seen = last.sequence;
                true
            }
            Ok(_) | Err(_) => false,
        }
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
