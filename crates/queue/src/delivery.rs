//! Webhook deliveries: raw, kept until somebody has handled them.

use std::{sync::Arc, time::Duration};

use async_nats::{HeaderMap, header, jetstream};
use bytes::Bytes;
use domain::{Instance, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{
    DeadLetter, DeadLetters, Error, body,
    connection::Connection,
    keyed_log::pause_after,
    pull::{self, Held},
    subject,
    topology::{DELIVERIES, DELIVERIES_PREFIX, ROUTER},
    trace,
};

const HEADER: &str = "Journeyman-Delivery";
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// One verified webhook call (or poll finding), raw.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// `jira` or `github`.
    pub source: String,
    /// The instance that sent it; absent: the default one of its source.
    pub instance: Option<Instance>,
    /// Unique id of the delivery (`X-GitHub-Delivery`, `X-Atlassian-Webhook-Identifier`, or the hash of the body).
    pub id: String,
    /// `X-GitHub-Event`, or Jira's `webhookEvent`; empty when unknown.
    pub event: String,
    /// When it came in.
    pub received_at: Timestamp,
    /// The body as it came.
    pub body: Bytes,
}

/// Everything of a delivery but its body, as the message's header carries it.
#[derive(Serialize, Deserialize)]
struct Meta {
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<Instance>,
    id: String,
    event: String,
    received_at: Timestamp,
}

/// Two instances may use the same ids.
fn message_id(delivery: &WebhookDelivery) -> String {
    let source = match &delivery.instance {
        Some(instance) => format!("{}+{instance}", delivery.source),
        None => delivery.source.clone(),
    };
    format!("{}.{}", subject::encode(&source), subject::encode(&delivery.id))
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
    pub(crate) connection: Arc<Connection>,
}

impl Deliveries {
    /// Publishes with the delivery id as message id and waits for the ack. Bodies over 512 KiB go to the object store.
    /// Returns false when the id was known (for 24 hours); a publish that was tried again may find its own.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three tries.
    pub async fn publish(&self, delivery: &WebhookDelivery) -> Result<bool, Error> {
        let meta = Meta {
            source: delivery.source.clone(),
            instance: delivery.instance.clone(),
            id: delivery.id.clone(),
            event: delivery.event.clone(),
            received_at: delivery.received_at,
        };
        let meta = serde_json::to_string(&meta).map_err(|error| Error::corrupt("a delivery", error))?;
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, meta);
        headers.insert(header::NATS_MESSAGE_ID, message_id(delivery));
        let payload = body::pack(&self.connection.objects(), &mut headers, delivery.body.clone()).await?;
        let subject = subject::under(DELIVERIES_PREFIX, &delivery.source);
        let published = self.connection.publish(&subject, headers, payload);
        let ack = failpoint::around_kind("queue.delivery.publish", &delivery.source, published).await?;
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
            match pull::one(&consumer, &shutdown).await {
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
        let held = Held::new(DELIVERIES, acker, self.connection.ack_wait);
        let delivery = match self.decode(&message).await {
            Ok(delivery) => delivery,
            Err(Error::Corrupt { what, problem }) => {
                self.reject(held, (what, problem), None, message.payload).await;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "delivery not read; tried again");
                held.release(Some(PAUSE_AFTER_ERROR)).await;
                return;
            }
        };
        let (id, body) = (delivery.id.clone(), delivery.body.clone());
        let span = tracing::info_span!("delivery", source = delivery.source, id, event = delivery.event);
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
        let meta = headers
            .and_then(|headers| headers.get(HEADER))
            .ok_or_else(|| Error::corrupt(message.subject.as_str(), "the delivery's header is missing"))?;
        let meta: Meta = serde_json::from_str(meta.as_str())
            .map_err(|error| Error::corrupt(message.subject.as_str(), error))?;
        let body = body::unpack(&self.connection.objects(), headers, message.payload.clone()).await?;
        let Meta {
            source,
            instance,
            id,
            event,
            received_at,
        } = meta;
        Ok(WebhookDelivery {
            instance,
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
        let letters = DeadLetters {
            connection: self.connection.clone(),
        };
        let letter = DeadLetter {
            what: "delivery".to_owned(),
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

/// Where a message with a delivery's header came from.
pub(crate) fn source_of(headers: &HeaderMap) -> Option<String> {
    let meta: Meta = serde_json::from_str(headers.get(HEADER)?.as_str()).ok()?;
    Some(meta.source)
}

/// Copies a delivery's header.
pub(crate) fn keep_meta(from: Option<&HeaderMap>, to: &mut HeaderMap) {
    if let Some(meta) = from.and_then(|headers| headers.get(HEADER)) {
        to.insert(HEADER, meta.clone());
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
