//! One timer per ticket, kept by the server as a scheduled message.

use std::sync::Arc;

use async_nats::{HeaderMap, header};
use bytes::Bytes;
use domain::{TicketKey, Timestamp};

use crate::{connection::Connection, error::Error, names};

/// The tickets' timers. Cheap to clone.
#[derive(Clone)]
pub struct Timers {
    connection: Arc<Connection>,
}

impl Timers {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    /// Sets the ticket's one timer (an earlier one is replaced); the waker wakes the ticket when it is due. The row
    /// holds the due time too.
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
