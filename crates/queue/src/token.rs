//! Records of keyed logs, and their wake-up tokens: the holder of a ticket's token works on the ticket.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use async_nats::jetstream::{self, consumer::PullConsumer};
use domain::{
    FenceStamp, OutboundRequest, ReporterFence, RunFence, StoredRecord, TicketKey, Trigger,
    cause::format_error_chain,
};
use opentelemetry::trace::SpanContext;
use tokio_util::sync::CancellationToken;

use crate::{
    connection::NatsConnection,
    epoch,
    error::Error,
    names::LogNames,
    pull::{self, HeldMessage, pause_after},
    trace,
};

/// Record of a keyed log.
pub trait KeyedRecord: StoredRecord + Send + Sync + 'static {
    /// Fence that the tokens of this log carry.
    type Fence: From<FenceStamp> + Copy + Ord + Send;
    /// Ticket of the record.
    fn ticket(&self) -> &TicketKey;
    /// Semantic key, unique within the ticket.
    fn key(&self) -> &str;
}

impl KeyedRecord for Trigger {
    type Fence = RunFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.key.as_str()
    }
}

impl KeyedRecord for OutboundRequest {
    type Fence = ReporterFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Source of the tokens of a keyed log, one at a time.
pub struct TokenSource<T> {
    connection: Arc<NatsConnection>,
    names: &'static LogNames,
    shutdown: CancellationToken,
    consumer: PullConsumer,
    epoch: u64,
    record: PhantomData<fn() -> T>,
}

impl<T: KeyedRecord> TokenSource<T> {
    pub(crate) async fn open(
        connection: Arc<NatsConnection>,
        names: &'static LogNames,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let (consumer, epoch) = open_consumer(&connection, names).await?;
        Ok(Self {
            connection,
            names,
            shutdown,
            consumer,
            epoch,
            record: PhantomData,
        })
    }

    /// Waits for the next token, fetching exactly one message; `None` at shutdown. Survives reconnects.
    pub async fn next(&mut self) -> Option<WakeupToken<T>> {
        while !self.shutdown.is_cancelled() {
            match pull::pull_message(&self.connection, &self.consumer, &self.shutdown).await {
                Ok(Some(message)) => match self.token(message).await {
                    Some(token) => return Some(token),
                    None => continue,
                },
                Ok(None) => {}
                Err(error) => {
                    pause_after(&error, self.names.wakeups, &self.shutdown).await;
                    self.reopen().await;
                }
            }
        }
        None
    }

    /// Opens the consumer again and reads the epoch, because both stream and consumer may have been created
    /// again.
    async fn reopen(&mut self) {
        match open_consumer(&self.connection, self.names).await {
            Ok((consumer, epoch)) => (self.consumer, self.epoch) = (consumer, epoch),
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), stream = self.names.wakeups, "tokens are out of reach")
            }
        }
    }

    async fn token(&self, message: jetstream::Message) -> Option<WakeupToken<T>> {
        let place = message
            .info()
            .ok()
            .map(|info| (info.stream_sequence, info.delivered));
        let (message, acker) = message.split();
        let held = HeldMessage::new(self.names.wakeups, acker, self.connection.ack_wait());
        let ticket = self.names.ticket_of_token(&message.subject);
        let (Some(ticket), Some((sequence, delivered))) = (ticket, place) else {
            tracing::error!(subject = %message.subject, "token without a ticket; forgotten");
            let _ = held.finish().await;
            return None;
        };
        let delivered = u64::try_from(delivered).unwrap_or_default();
        let fence = FenceStamp {
            epoch: self.epoch,
            sequence,
            delivered,
        }
        .into();
        Some(WakeupToken {
            connection: self.connection.clone(),
            names: self.names,
            ticket,
            fence,
            held,
            origin: trace::read_origin_context(message.headers.as_ref()),
        })
    }
}

async fn open_consumer(
    connection: &Arc<NatsConnection>,
    names: &LogNames,
) -> Result<(PullConsumer, u64), Error> {
    let consumer = connection.consumer(names.wakeups, names.workers).await?;
    let epoch = epoch::read_current_epoch(connection, names).await?;
    Ok((consumer, epoch))
}

/// One delivery of a ticket's token. A background task reports progress until it is finished, released,
/// abandoned or dropped.
///
/// Dropping it is the same as [`WakeupToken::abandon`].
pub struct WakeupToken<T: KeyedRecord> {
    connection: Arc<NatsConnection>,
    names: &'static LogNames,
    ticket: TicketKey,
    fence: T::Fence,
    held: HeldMessage,
    origin: SpanContext,
}

impl<T: KeyedRecord> WakeupToken<T> {
    /// Ticket to work on.
    pub fn ticket(&self) -> &TicketKey {
        &self.ticket
    }

    /// Fence of this delivery: higher than that of every earlier delivery of the ticket's token.
    pub fn fence(&self) -> T::Fence {
        self.fence
    }

    /// Makes a span that has not begun a child of the span that woke the ticket.
    ///
    /// If another ticket's work or an untraced process woke it, the parent is the ticket's first span, with a
    /// link to the cause.
    pub async fn follow(&self, span: &tracing::Span) {
        if trace::is_traced(span) {
            trace::set_parent(span, &self.origin);
            let first = trace::first_origin(&self.connection, self.names, &self.ticket).await;
            trace::join_ticket_trace(span, &self.origin, &first);
        }
    }

    /// Acknowledges the token and waits for the confirmation.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the token is redelivered after `nats.ack_wait_ms`.
    pub async fn finish(self) -> Result<(), Error> {
        self.held.finish().await
    }

    /// Returns the token; another worker receives it at once.
    pub async fn release(self) {
        self.held.release(None).await;
    }

    /// Returns the token; a worker receives it after a delay.
    pub async fn release_after(self, after: Duration) {
        self.held.release(Some(after)).await;
    }

    /// Drops the token without a message to the server, because the ticket belongs to another worker.
    pub fn abandon(self) {}
}
