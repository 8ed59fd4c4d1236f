//! Timers of tickets, and the waker, which turns appended records and due timers into wake-up tokens.
//!
//! A ticket has one timer, which the server stores as a scheduled message.
//!
//! The waker acknowledges a message only after it stored a token for it, or after a worker consumed the
//! record or timer. A refused token alone proves nothing. The outstanding one may belong to a worker that has
//! read the log for the last time, and with three servers it may be acknowledged already.

use std::{sync::Arc, time::Duration};

use async_nats::{HeaderMap, header, jetstream};
use bootstrap::read_wall_clock;
use bytes::Bytes;
use domain::{OutboundCursor, TicketKey, TicketRow, Timestamp, cause::format_error_chain};
use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::NatsConnection,
    error::Error,
    keyed_log::{KeyedLog, build_covering_headers},
    names::{self, KeyValueBucket, RecordKey, TIMERS, WAKER},
    pull::{self, HeldMessage, pause_after},
    table::TypedTable,
    token::KeyedRecord,
    trace,
};

// Number of messages for which one waker publishes tokens at the same time.
const WAKES_AT_ONCE: usize = 16;
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
// Pauses before a message whose token was refused is tried again, by the number of its deliveries. The last
// pause repeats.
const HOLD_PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];
// Allowed difference between the clocks of the server, which fires timers, and of this process.
const CLOCKS_DIFFER_MS: i64 = 60_000;

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

/// Reason why a ticket needs a token.
#[derive(Clone, Copy, Debug)]
enum WakeupNeed {
    /// The record at this sequence was appended.
    Record(u64),
    /// The ticket's timer is due.
    Timer,
}

/// Progress that a ticket's worker has stored.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerProgress {
    cursor: u64,
    due: Option<Timestamp>,
}

impl<T: KeyedRecord> KeyedLog<T> {
    /// Runs the waker until shutdown: a durable consumer of the log, and one of due timers. Any number of
    /// processes may run it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start; later errors are logged and retried.
    pub async fn run_waker(&self, shutdown: CancellationToken) -> Result<(), Error> {
        let of_record = |subject: &str| self.names.ticket_of_record(subject);
        let appends = self.wake_from(self.names.stream, of_record, WakeupNeed::Record, &shutdown);
        if self.names.takes_timers {
            let timers = self.wake_from(TIMERS, names::ticket_of_timer, |_| WakeupNeed::Timer, &shutdown);
            tokio::try_join!(appends, timers).map(drop)
        } else {
            appends.await
        }
    }

    async fn wake_from(
        &self,
        stream: &str,
        ticket_of: impl Fn(&str) -> Option<TicketKey>,
        need_of: impl Fn(u64) -> WakeupNeed,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let consumer = self.connection.consumer(stream, WAKER).await?;
        let messages = stream::unfold(consumer, move |consumer| async move {
            while !shutdown.is_cancelled() {
                match pull::pull_message(&self.connection, &consumer, shutdown).await {
                    Ok(Some(message)) => return Some((message, consumer)),
                    Ok(None) => {}
                    Err(error) => pause_after(&error, stream, shutdown).await,
                }
            }
            None
        });
        // The order of wake-ups is free: a token covers all records up to its own.
        let waking = messages.for_each_concurrent(WAKES_AT_ONCE, |message| {
            self.wake_for(ticket_of(&message.subject), &need_of, message)
        });
        waking.await;
        Ok(())
    }

    async fn wake_for(
        &self,
        ticket: Option<TicketKey>,
        need_of: impl Fn(u64) -> WakeupNeed,
        message: jetstream::Message,
    ) {
        let place = message.info().ok();
        let place = place.map(|info| (info.stream_sequence, info.delivered));
        let (message, acker) = message.split();
        let held = HeldMessage::new("waker", acker, self.connection.ack_wait());
        let (Some(ticket), Some((sequence, delivered))) = (ticket, place) else {
            tracing::error!(subject = %message.subject, "message without a ticket in its subject; forgotten");
            // The subject never becomes a ticket, so a redelivery would not end.
            acknowledge_message(held).await;
            return;
        };
        let need = need_of(sequence);
        let mut headers = match need {
            WakeupNeed::Record(sequence) => build_covering_headers(sequence),
            WakeupNeed::Timer => HeaderMap::new(),
        };
        trace::copy_trace_context(message.headers.as_ref(), &mut headers);
        match self.meet_need(&ticket, need, headers, delivered).await {
            Ok(true) => acknowledge_message(held).await,
            Ok(false) => {
                let tries = usize::try_from(delivered).unwrap_or_default();
                let pause = HOLD_PAUSES[tries.saturating_sub(1).min(HOLD_PAUSES.len() - 1)];
                held.release(Some(pause)).await;
            }
            Err(error) => {
                tracing::warn!(%ticket, error = %format_error_chain(&error), "ticket not woken; tried again in a second");
                held.release(Some(PAUSE_AFTER_ERROR)).await;
            }
        }
    }

    /// Publishes a token unless its need is met without one. Returns false when the token was refused and the need is
    /// not met yet.
    async fn meet_need(
        &self,
        ticket: &TicketKey,
        need: WakeupNeed,
        headers: HeaderMap,
        delivered: i64,
    ) -> Result<bool, Error> {
        // The worker whose token refused this one may have consumed the record and finished since. A token would
        // wake another worker, which would find nothing to do.
        if delivered > 1 && self.is_consumed(ticket, need).await? {
            return Ok(true);
        }
        Ok(self.token(ticket, headers).await? || self.is_met(ticket, need).await?)
    }

    /// True when the ticket's worker has stored that it consumed the record.
    async fn is_consumed(&self, ticket: &TicketKey, need: WakeupNeed) -> Result<bool, Error> {
        match need {
            WakeupNeed::Record(sequence) => Ok(self.progress(ticket).await?.cursor >= sequence),
            // A row that this release cannot read has no due time either, so only a refused token spares the timer.
            WakeupNeed::Timer => Ok(false),
        }
    }

    /// True when the outstanding token or its worker covers the record or timer of a refused token.
    async fn is_met(&self, ticket: &TicketKey, need: WakeupNeed) -> Result<bool, Error> {
        match need {
            WakeupNeed::Record(sequence) => {
                Ok(self.covered(ticket).await? >= sequence || self.is_consumed(ticket, need).await?)
            }
            WakeupNeed::Timer => {
                let due = self.progress(ticket).await?.due;
                // The worker sets a later timer, or none, once it has handled the due one.
                Ok(due.is_none_or(|due| due > read_wall_clock().plus_ms(CLOCKS_DIFFER_MS)))
            }
        }
    }

    /// Stored progress of the ticket's worker; zero for a record that this release cannot read.
    async fn progress(&self, ticket: &TicketKey) -> Result<WorkerProgress, Error> {
        let read = if self.names.takes_timers {
            let rows = TypedTable::<TicketRow>::new(self.connection.clone(), KeyValueBucket::Tickets);
            rows.get(&ticket.to_string()).await.map(|row| {
                row.map(|(row, _)| WorkerProgress {
                    cursor: row.cursor,
                    due: row.due,
                })
            })
        } else {
            let cursors = TypedTable::<OutboundCursor>::new(self.connection.clone(), KeyValueBucket::Effects);
            cursors.get(RecordKey::cursor(ticket)).await.map(|cursor| {
                cursor.map(|(cursor, _)| WorkerProgress {
                    cursor: cursor.sequence,
                    due: None,
                })
            })
        };
        match read {
            Ok(progress) => Ok(progress.unwrap_or_default()),
            // Without known progress the message stays, so the waker tries again instead of losing a wake-up.
            Err(Error::Corrupt { .. } | Error::Newer { .. }) => Ok(WorkerProgress::default()),
            Err(error) => Err(error),
        }
    }
}

async fn acknowledge_message(held: HeldMessage) {
    if let Err(error) = held.finish().await {
        tracing::warn!(error = %format_error_chain(&error), "message not acknowledged; it comes again");
    }
}
