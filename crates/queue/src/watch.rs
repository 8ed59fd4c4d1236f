//! Notification of appends to one ticket's log, for a worker that holds the ticket.

use std::{sync::Arc, time::Duration};

use async_nats::Subscriber;
use domain::ErrorCause;
use futures::StreamExt as _;
use tokio::time::{sleep, timeout};

use crate::{connection::NatsConnection, error::Error};

// Core NATS delivers at most once. A lost notification is noticed after this time.
const LOOK_ANYWAY_AFTER: Duration = Duration::from_secs(15);
const SETTLE_TRIES: u32 = 20;
const SETTLE_PAUSE: Duration = Duration::from_millis(10);

/// Notifications of appends to one ticket's log.
pub struct LogWatch {
    connection: Arc<NatsConnection>,
    stream: &'static str,
    subject: String,
    subscriber: Subscriber,
    seen: u64,
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
        })
    }

    /// Waits for the next append to the ticket's log. Cancel-safe.
    pub async fn changed(&mut self) {
        loop {
            if self.has_grown().await {
                return;
            }
            if let Ok(None) = timeout(LOOK_ANYWAY_AFTER, self.subscriber.next()).await {
                // The subscription has ended for good, with the connection.
                sleep(LOOK_ANYWAY_AFTER).await;
            }
            // The subscription receives a message before the stream has stored it.
            for _ in 0..SETTLE_TRIES {
                if self.has_grown().await {
                    return;
                }
                sleep(SETTLE_PAUSE).await;
            }
        }
    }

    async fn has_grown(&mut self) -> bool {
        match self.connection.last(self.stream, &self.subject).await {
            Ok(Some(last)) if last.sequence > self.seen => {
                self.seen = last.sequence;
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}
