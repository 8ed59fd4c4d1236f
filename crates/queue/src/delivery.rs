//! Webhook deliveries: stored unparsed until ingest has handled them.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_nats::{HeaderMap, header, jetstream};
use bootstrap::read_wall_clock;
use bytes::Bytes;
use domain::{RecordKind, ServiceOrigin, Timestamp, cause::format_error_chain};
use futures::FutureExt as _;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{
    attempts::{AttemptCounter, AttemptState, MOST_CRASHES},
    body::{self, DeliveryHeader},
    connection::NatsConnection,
    dead_letters::{DeadLetter, DeadLetters},
    error::Error,
    names::{self, DELIVERIES, KeyValueBucket, ROUTER},
    objects::ContentStore,
    pull::{self, HeldMessage, pause_after},
    table::TypedTable,
    trace,
};

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);
// Delay of a delivery whose origin already has all waiting places taken.
const PAUSE_WHEN_FULL: Duration = Duration::from_secs(2);

/// Deliveries in hand, by subject, which identifies the origin.
struct OriginLimits {
    slots: usize,
    by_subject: HashMap<String, OriginSlots>,
}

/// Limits of one origin: places for waiting and running deliveries, and slots for running ones.
#[derive(Clone)]
struct OriginSlots {
    places: Arc<Semaphore>,
    slots: Arc<Semaphore>,
}

impl OriginLimits {
    fn new(slots: usize) -> Self {
        Self {
            slots,
            by_subject: HashMap::new(),
        }
    }

    fn of(&mut self, subject: &str) -> OriginSlots {
        let slots = self.slots;
        // Two places per slot: the next delivery is at hand when a slot becomes free, and one slow origin
        // holds few messages.
        let made = || OriginSlots {
            places: Arc::new(Semaphore::new(slots * 2)),
            slots: Arc::new(Semaphore::new(slots)),
        };
        self.by_subject
            .entry(subject.to_owned())
            .or_insert_with(made)
            .clone()
    }
}

/// Sequence of a message, and how often the server delivered it.
#[derive(Clone, Copy, Debug)]
struct MessagePlace {
    sequence: u64,
    delivered: u64,
}

impl MessagePlace {
    fn of(message: &jetstream::Message) -> Self {
        let (sequence, delivered) = message
            .info()
            .map_or((0, 1), |info| (info.stream_sequence, info.delivered));
        Self {
            sequence,
            delivered: u64::try_from(delivered).unwrap_or(1),
        }
    }
}

/// Verified webhook call or finding of a poll, unparsed.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// Instance of GitHub or Jira that it came from.
    pub source: ServiceOrigin,
    /// Unique id of the delivery: `X-GitHub-Delivery`, `X-Atlassian-Webhook-Identifier`, or the hash of the
    /// body.
    pub id: String,
    /// Event name: `X-GitHub-Event`, or Jira's `webhookEvent`; empty when unknown.
    pub event: String,
    /// Time at which ingest received it.
    pub received_at: Timestamp,
    /// Body as received.
    pub body: Bytes,
}

/// Result of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryDisposition {
    /// The message is handled and can be deleted.
    Done,
    /// The message should be redelivered after a delay. It is never dead-lettered by this.
    Retry {
        /// Delay before the redelivery.
        after: Duration,
    },
    /// The message can never be handled and moves to the dead letters.
    Reject {
        /// Reason, for the operator.
        reason: String,
    },
}

/// Queue of deliveries. Cheap to clone.
#[derive(Clone)]
pub struct DeliveryQueue {
    connection: Arc<NatsConnection>,
}

impl DeliveryQueue {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    fn objects(&self) -> ContentStore {
        ContentStore::new(self.connection.clone())
    }

    /// Publishes a delivery with its id as message id and waits for the acknowledgement. Bodies over 512 KiB
    /// are stored as objects.
    ///
    /// Returns false when the id was published within the last 24 hours. A retried publish may find its own
    /// first attempt.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after three attempts.
    pub async fn publish(&self, delivery: &WebhookDelivery) -> Result<bool, Error> {
        let meta = DeliveryHeader {
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
        let payload = body::pack_body(&self.objects(), &mut headers, delivery.body.clone()).await?;
        let subject = names::deliveries_of(&delivery.source);
        let published = self.connection.publish(&subject, headers, payload);
        let ack =
            failpoint::around_kind("queue.delivery.publish", delivery.source.service(), published).await?;
        Ok(!ack.duplicate)
    }

    /// Handles deliveries until shutdown, at most `slots` of each origin at a time, then waits for those in
    /// hand.
    ///
    /// An origin whose service does not answer does not delay other origins.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start; later errors are logged and retried.
    pub async fn consume<F, Fut>(
        &self,
        slots: usize,
        shutdown: CancellationToken,
        handler: F,
    ) -> Result<(), Error>
    where
        F: Fn(WebhookDelivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = DeliveryDisposition> + Send + 'static,
    {
        let consumer = self.connection.consumer(DELIVERIES, ROUTER).await?;
        let (handler, tasks) = (Arc::new(handler), TaskTracker::new());
        let mut desks = OriginLimits::new(slots.max(1));
        while !shutdown.is_cancelled() {
            match pull::pull_message(&self.connection, &consumer, &shutdown).await {
                Ok(Some(message)) => {
                    let (desk, (queue, handler)) =
                        (desks.of(&message.subject), (self.clone(), handler.clone()));
                    let place = MessagePlace::of(&message);
                    let (message, acker) = message.split();
                    let held = HeldMessage::new(DELIVERIES, acker, self.connection.ack_wait());
                    // Returned at once: a loop that waits for this origin would stop the deliveries of
                    // all others.
                    let Ok(seat) = desk.places.try_acquire_owned() else {
                        tasks.spawn(held.release(Some(PAUSE_WHEN_FULL)));
                        continue;
                    };
                    let shutdown = shutdown.clone();
                    tasks.spawn(async move {
                        match shutdown.run_until_cancelled(desk.slots.acquire_owned()).await {
                            Some(_slot) => queue.attempt(message, place, held, handler.as_ref()).await,
                            None => held.release(None).await,
                        }
                        // The place covers the settlement too, so that an origin never has more messages
                        // in hand than places.
                        drop(seat);
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

    fn attempts(&self) -> AttemptCounter {
        AttemptCounter::new(
            TypedTable::new(self.connection.clone(), KeyValueBucket::Control),
            DELIVERIES,
        )
    }

    /// Handles a delivery unless attempts at it crashed too often. A panic of the handler counts as a crash,
    /// and the delivery is redelivered.
    async fn attempt<F, Fut>(
        &self,
        message: async_nats::Message,
        place: MessagePlace,
        held: HeldMessage,
        handler: &F,
    ) where
        F: Fn(WebhookDelivery) -> Fut,
        Fut: Future<Output = DeliveryDisposition>,
    {
        let attempt = match self.attempts().begin(place.sequence, place.delivered).await {
            Ok(attempt) => attempt,
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "attempt at a delivery not counted; tried again");
                held.release(Some(PAUSE_AFTER_ERROR)).await;
                return;
            }
        };
        let handled = self.handle(message, (place, attempt), held, handler);
        if AssertUnwindSafe(handled).catch_unwind().await.is_err() {
            let MessagePlace { sequence, delivered } = place;
            tracing::error!(
                sequence,
                delivered,
                "the handler of a delivery panicked; it comes again"
            );
        }
    }

    async fn handle<F, Fut>(
        &self,
        message: async_nats::Message,
        (place, attempt): (MessagePlace, AttemptState),
        held: HeldMessage,
        handler: &F,
    ) where
        F: Fn(WebhookDelivery) -> Fut,
        Fut: Future<Output = DeliveryDisposition>,
    {
        let delivery = match self.decode(&message).await {
            Ok(delivery) => delivery,
            Err(Error::Corrupt { what, problem }) => {
                self.reject(held, (what, problem), None, message.payload).await;
                return;
            }
            Err(error) => {
                // A delivery that a newer release wrote waits for a process of that release.
                tracing::warn!(error = %format_error_chain(&error), "delivery not read; tried again");
                // This attempt did not crash. If it counted as one, the process that can read the delivery would
                // give it up.
                if attempt == AttemptState::Open {
                    log_lost_note(self.attempts().reset(place.sequence).await);
                }
                held.release(Some(PAUSE_AFTER_ERROR)).await;
                return;
            }
        };
        let (id, body) = (delivery.id.clone(), delivery.body.clone());
        let span = tracing::info_span!("delivery", source = %delivery.source, id, event = delivery.event);
        span.add_link(trace::read_origin_context(message.headers.as_ref()));
        let disposition = match attempt {
            AttemptState::Open => handler(delivery).instrument(span).await,
            AttemptState::Exhausted => {
                tracing::error!(
                    id,
                    "delivery given up: each attempt at it ended the process or panicked"
                );
                DeliveryDisposition::Reject {
                    reason: format!(
                        "each of {MOST_CRASHES} attempts to handle it ended the process or panicked; the logs of ingest say why"
                    ),
                }
            }
        };
        // A crash between the two steps only repeats the attempt: an unacknowledged message is redelivered.
        let attempts = self.attempts();
        let noted = match disposition {
            DeliveryDisposition::Retry { after } => {
                let noted = attempts.reset(place.sequence).await;
                held.release(Some(after)).await;
                noted
            }
            DeliveryDisposition::Done => {
                acknowledge_delivery(held).await;
                attempts.forget(place.sequence, place.delivered).await
            }
            DeliveryDisposition::Reject { reason } => {
                let headers = message.headers.as_ref();
                match self.reject(held, (id, reason), headers, body).await {
                    RejectionOutcome::Stored => attempts.forget(place.sequence, place.delivered).await,
                    RejectionOutcome::Later => match attempt {
                        // The handler gave its result, so a later letter must have that reason, too.
                        AttemptState::Open => attempts.reset(place.sequence).await,
                        AttemptState::Exhausted => Ok(()),
                    },
                }
            }
        };
        log_lost_note(noted);
    }

    async fn decode(&self, message: &async_nats::Message) -> Result<WebhookDelivery, Error> {
        let headers = message.headers.as_ref();
        let meta = DeliveryHeader::read(headers, &message.subject)?;
        let body = body::unpack_body(&self.objects(), headers, message.payload.clone()).await?;
        let DeliveryHeader {
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

    /// Moves a delivery to the dead letters. The letter is stored before the message is acknowledged, so that
    /// a crash loses neither.
    async fn reject(
        &self,
        held: HeldMessage,
        (id, reason): (String, String),
        meta: Option<&HeaderMap>,
        payload: Bytes,
    ) -> RejectionOutcome {
        let letters = DeadLetters::new(self.connection.clone());
        let letter = DeadLetter {
            what: RecordKind::Delivery,
            id,
            ticket: None,
            reason,
            at: read_wall_clock(),
        };
        match letters.publish_delivery(&letter, meta, payload).await {
            Ok(()) => {
                acknowledge_delivery(held).await;
                RejectionOutcome::Stored
            }
            Err(error) => {
                tracing::warn!(id = letter.id, error = %format_error_chain(&error), "dead letter not stored; tried again");
                held.release(Some(PAUSE_AFTER_ERROR)).await;
                RejectionOutcome::Later
            }
        }
    }
}

/// Result of a rejection.
enum RejectionOutcome {
    /// The dead letter is stored.
    Stored,
    /// The dead letter is not stored; the delivery is redelivered.
    Later,
}

fn log_lost_note(noted: Result<(), Error>) {
    if let Err(error) = noted {
        tracing::warn!(error = %format_error_chain(&error), "the end of an attempt at a delivery is not noted");
    }
}

async fn acknowledge_delivery(held: HeldMessage) {
    if let Err(error) = held.finish().await {
        tracing::warn!(error = %format_error_chain(&error), "delivery not acknowledged; it comes again");
    }
}
