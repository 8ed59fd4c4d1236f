//! Webhook deliveries: raw, kept until somebody has handled them.

use std::{sync::Arc, time::Duration};

use async_nats::{HeaderMap, header, jetstream};
use bytes::Bytes;
use domain::{Origin, RecordKind, Timestamp};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{
    body,
    connection::Connection,
    dead::{DeadLetter, DeadLetters},
    error::Error,
    meta::Meta,
    names::{self, DELIVERIES, ROUTER},
    objects::Objects,
    pull::{self, Held, pause_after},
    trace,
};

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// One verified webhook call (or poll finding), raw.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// Where it came from.
    pub source: Origin,
    /// Unique id of the delivery (`X-GitHub-Delivery`, `X-Atlassian-Webhook-Identifier`, or the hash of the body).
    pub id: String,
    /// `X-GitHub-Event`, or Jira's `webhookEvent`; empty when unknown.
    pub event: String,
    /// When it came in.
    pub received_at: Timestamp,
    /// The body as it came.
    pub body: Bytes,
}

/// What a handler says of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Handled; forget it.
    Done,
    /// Not now; again after this long. Never dead-letters by itself.
    Retry {
        /// How long to wait.
        after: Duration,
    },
    /// It can never be handled: to the dead letters with this reason.
    Reject {
        /// For the operator.
        reason: String,
    },
}

/// The deliveries' queue. Cheap to clone.
#[derive(Clone)]
pub struct Deliveries {
    connection: Arc<Connection>,
}

impl Deliveries {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    fn objects(&self) -> Objects {
        Objects::new(self.connection.clone())
    }

    /// Publishes with the delivery id as message id and waits for the ack. Bodies over 512 KiB go to the object store.
    /// Returns false when the id was known (for 24 hours); a publish that was tried again may find its own.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three tries.
    pub async fn publish(&self, delivery: &WebhookDelivery) -> Result<bool, Error> {
        let meta = Meta {
            source: delivery.source.clone(),
            id: delivery.id.clone(),
            event: delivery.event.clone(),
            received_at: delivery.received_at,
        };
        let mut headers = HeaderMap::new();
        meta.write(&mut headers)?;
        headers.insert(
            header::NATS_MESSAGE_ID,
            names::delivery_id(&delivery.source, &delivery.id),
        );
        let payload = body::pack(&self.objects(), &mut headers, delivery.body.clone()).await?;
        let subject = names::deliveries_of(&delivery.source);
        let published = self.connection.publish(&subject, headers, payload);
        let ack =
            failpoint::around_kind("queue.delivery.publish", delivery.source.service(), published).await?;
        Ok(!ack.duplicate)
    }

    /// Handles deliveries, at most `slots` at once, until shutdown; then lets those in hand finish.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start; later trouble is logged and tried again.
    pub async fn consume<F, Fut>(
        &self,
        slots: usize,
        shutdown: CancellationToken,
        handler: F,
    ) -> Result<(), Error>
    where
        F: Fn(WebhookDelivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Disposition> + Send + 'static,
    {
        let consumer = self.connection.consumer(DELIVERIES, ROUTER).await?;
        let (handler, slots, tasks) = (
            Arc::new(handler),
            Arc::new(Semaphore::new(slots.max(1))),
            TaskTracker::new(),
        );
        while !shutdown.is_cancelled() {
            let slot = tokio::select! {
                () = shutdown.cancelled() => break,
                slot = slots.clone().acquire_owned() => slot,
            };
            match pull::one(&self.connection, &consumer, &shutdown).await {
                Ok(Some(message)) => {
                    let (queue, handler) = (self.clone(), handler.clone());
                    tasks.spawn(async move {
                        queue.handle(message, handler.as_ref()).await;
                        drop(slot);
                    });
                }
                Ok(None) => {}
                Err(error) => pause_after(&error, DELIVERIES, &shutdown).await,
            }
        }
        tasks.close();
        tasks.wait().await;
        Ok(())
    }

    async fn handle<F, Fut>(&self, message: jetstream::Message, handler: &F)
    where
        F: Fn(WebhookDelivery) -> Fut,
        Fut: Future<Output = Disposition>,
    {
        let (message, acker) = message.split();
        let held = Held::new(DELIVERIES, acker, self.connection.ack_wait());
        let delivery = match self.decode(&message).await {
            Ok(delivery) => delivery,
            Err(Error::Corrupt { what, problem }) => {
                self.reject(held, (what, problem), None, message.payload).await;
                return;
            }
            Err(error) => {
                // One of a newer release waits for a process of that release.
                tracing::warn!(%error, "delivery not read; tried again");
                held.release(Some(PAUSE_AFTER_ERROR)).await;
                return;
            }
        };
        let (id, body) = (delivery.id.clone(), delivery.body.clone());
        let span = tracing::info_span!("delivery", source = %delivery.source, id, event = delivery.event);
        span.add_link(trace::origin(message.headers.as_ref()));
        match handler(delivery).instrument(span).await {
            Disposition::Done => acknowledge(held).await,
            Disposition::Retry { after } => held.release(Some(after)).await,
            Disposition::Reject { reason } => {
                self.reject(held, (id, reason), message.headers.as_ref(), body)
                    .await;
            }
        }
    }

    async fn decode(&self, message: &async_nats::Message) -> Result<WebhookDelivery, Error> {
        let headers = message.headers.as_ref();
        let meta = Meta::read(headers, &message.subject)?;
        let body = body::unpack(&self.objects(), headers, message.payload.clone()).await?;
        let Meta {
            source,
            id,
            event,
            received_at,
        } = meta;
        Ok(WebhookDelivery {
            source,
            id,
            event,
            received_at,
            body,
        })
    }

    /// The dead letter is stored before the message is forgotten.
    async fn reject(
        &self,
        held: Held,
        (id, reason): (String, String),
        meta: Option<&HeaderMap>,
        payload: Bytes,
    ) {
        let letters = DeadLetters::new(self.connection.clone());
        let letter = DeadLetter {
            what: RecordKind::Delivery,
            id,
            ticket: None,
            reason,
            at: clock(),
        };
        match letters.publish_delivery(&letter, meta, payload).await {
            Ok(()) => acknowledge(held).await,
            Err(error) => {
                tracing::warn!(id = letter.id, %error, "dead letter not stored; tried again");
                held.release(Some(PAUSE_AFTER_ERROR)).await;
            }
        }
    }
}

/// When a dead letter was written: for people only, nothing is decided by it.
fn clock() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

async fn acknowledge(held: Held) {
    if let Err(error) = held.finish().await {
        tracing::warn!(%error, "delivery not acknowledged; it comes again");
    }
}
