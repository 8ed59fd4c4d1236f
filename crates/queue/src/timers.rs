//! Timers of tickets: one per ticket, stored by the server as a scheduled message.

use std::sync::Arc;

use async_nats::{HeaderMap, header};
use bytes::Bytes;
use domain::{TicketKey, Timestamp};

use crate::{connection::NatsConnection, error::Error, names};

/// Timers of the tickets. Cheap to clone.
#[derive(Clone)]
pub struct TicketTimers {
    connection: Arc<NatsConnection>,
}

impl TicketTimers {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    /// Sets the ticket's one timer and replaces an earlier one. When it is due, the waker publishes the
    /// ticket's token.
    ///
    /// The row stores the due time too, so that the waker can check it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn set(&self, ticket: &TicketKey, due: Timestamp) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_SCHEDULE, format!("@at {due}"));
        headers.insert(header::NATS_SCHEDULE_TARGET, names::timer_due(ticket));
        let subject = names::timer_set(ticket);
        let published = self.connection.publish(&subject, headers, Bytes::new());
        failpoint::around("queue.timer.set", published).await?;
        Ok(())
    }
}
