//! Wake-up tokens: who holds one works on the ticket.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use async_nats::jetstream::{self, consumer::PullConsumer};
use domain::{FenceStamp, TicketKey, cause::chain};
use opentelemetry::trace::SpanContext;
use tokio_util::sync::CancellationToken;

use crate::{
    connection::Connection,
    epoch,
    error::Error,
    keyed::Keyed,
    names::LogNames,
    pull::{self, Held, pause_after},
    trace,
};

/// The tokens of a keyed log, one at a time.
pub struct Tokens<T> {
    connection: Arc<Connection>,
    names: &'static LogNames,
    shutdown: CancellationToken,
    consumer: PullConsumer,
    epoch: u64,
    record: PhantomData<fn() -> T>,
}

impl<T: Keyed> Tokens<T> {
    pub(crate) async fn open(
        connection: Arc<Connection>,
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

    /// The next token (fetches exactly one); `None` at shutdown. Survives reconnects.
    pub async fn next(&mut self) -> Option<Token<T>> {
        while !self.shutdown.is_cancelled() {
            match pull::one(&self.connection, &self.consumer, &self.shutdown).await {
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

    /// Stream and consumer may have been created again, so the epoch is looked up again.
    async fn reopen(&mut self) {
        match open_consumer(&self.connection, self.names).await {
            Ok((consumer, epoch)) => (self.consumer, self.epoch) = (consumer, epoch),
            Err(error) => {
                tracing::warn!(error = %chain(&error), stream = self.names.wakeups, "tokens are out of reach")
            }
        }
    }

    async fn token(&self, message: jetstream::Message) -> Option<Token<T>> {
        let place = message
            .info()
            .ok()
            .map(|info| (info.stream_sequence, info.delivered));
        let (message, acker) = message.split();
        let held = Held::new(self.names.wakeups, acker, self.connection.ack_wait());
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
        Some(Token {
            connection: self.connection.clone(),
            names: self.names,
            ticket,
            fence,
            held,
            origin: trace::origin(message.headers.as_ref()),
        })
    }
}

async fn open_consumer(connection: &Arc<Connection>, names: &LogNames) -> Result<(PullConsumer, u64), Error> {
    let consumer = connection.consumer(names.wakeups, names.workers).await?;
    let epoch = epoch::current(connection, names).await?;
    Ok((consumer, epoch))
}

/// One delivery of a ticket's token. A heartbeat task sends progress until it is finished, released or
/// abandoned. Dropping it without a word is `abandon`.
pub struct Token<T: Keyed> {
    connection: Arc<Connection>,
    names: &'static LogNames,
    ticket: TicketKey,
    fence: T::Fence,
    held: Held,
    origin: SpanContext,
}

impl<T: Keyed> Token<T> {
    /// The ticket to work on.
    pub fn ticket(&self) -> &TicketKey {
        &self.ticket
    }

    /// The fence of this delivery: higher than that of every earlier one of the ticket.
    pub fn fence(&self) -> T::Fence {
        self.fence
    }

    /// Makes a span that has not begun a child of the one that woke the ticket; of the ticket's first one, with a link, where
    /// another ticket's work or nothing traced woke it.
    pub async fn follow(&self, span: &tracing::Span) {
        if trace::is_traced(span) {
            trace::set_parent(span, &self.origin);
            let first = trace::first_origin(&self.connection, self.names, &self.ticket).await;
            trace::join(span, &self.origin, &first);
        }
    }

    /// Acknowledges with confirmation.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the token is then delivered again after `nats.ack_wait_ms`.
    pub async fn finish(self) -> Result<(), Error> {
        self.held.finish().await
    }

    /// Gives it back now; somebody gets it at once.
    pub async fn release(self) {
        self.held.release(None).await;
    }

    /// Gives it back after a delay.
    pub async fn release_after(self, after: Duration) {
        self.held.release(Some(after)).await;
    }

    /// Sends nothing: the ticket belongs to somebody else.
    pub fn abandon(self) {}
}
