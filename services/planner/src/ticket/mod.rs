//! Work on one ticket: its lease, its row, its runs.

mod fold;
mod intake;
mod lanes;
mod outcome_wait;
mod row;
mod session;
mod step_entries;
mod timers;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use domain::{
    OutboundAction, OutboundId, OutboundRequest, RecordKind, RunFence, TicketKey, TicketRow, Trigger,
    cause::format_error_chain, report,
};
use lease::{TicketLease, TicketLeases};
use queue::{DeadLetter, KeyValueBucket, LogWatch, Queue, UnreadableRecord, WakeupToken};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::driver::{RunDriver, TicketError};
use crate::telemetry;
use crate::ticket_slots::TicketSlots;
use session::{SessionEnd, TicketSession};

const TROUBLE_PAUSE: Duration = Duration::from_secs(5);

/// Works on tickets, one token at a time.
pub(crate) struct TicketWorker {
    queue: Queue,
    leases: TicketLeases,
    driver: Arc<RunDriver>,
}

impl TicketWorker {
    /// Creates a worker with the dependencies of its runs.
    pub(crate) fn new(queue: Queue, leases: TicketLeases, driver: RunDriver) -> Self {
        Self {
            queue,
            leases,
            driver: Arc::new(driver),
        }
    }

    /// Works on a token's ticket until its runs are parked or finished, then settles the token. While no other ticket
    /// needs its slot, it also waits a short time for the outcome of a report.
    pub(crate) async fn handle(
        &self,
        token: WakeupToken<Trigger>,
        slots: &TicketSlots,
        shutdown: CancellationToken,
    ) {
        let span = tracing::info_span!("ticket", otel.kind = "consumer", ticket = %token.ticket());
        token.follow(&span).await;
        Box::pin(self.take(token, slots, shutdown)).instrument(span).await;
    }

    /// Forwards the remaining spans from executors.
    pub(crate) async fn finish_spans(&self) {
        self.driver.executors.finish_spans().await;
    }

    async fn take(&self, token: WakeupToken<Trigger>, slots: &TicketSlots, shutdown: CancellationToken) {
        let (ticket, fence) = (token.ticket().clone(), token.fence());
        // The watch only reads, so it needs no lease. It opens before the row is read, so that no trigger is missed.
        let triggers = self.queue.triggers();
        let (lease, watch) = tokio::join!(self.leases.take(&ticket, fence), triggers.watch(&ticket));
        let Some(lease) = lease else {
            tracing::debug!(%ticket, %fence, "a newer planner has the ticket");
            // No ack and no nak: JetStream would accept them from any planner, and the token belongs to the
            // newer one.
            return token.abandon();
        };
        if !lease.is_held() {
            telemetry::count_missing_lease();
        }
        // The lease may be lost while a step waits for minutes, so it is watched during the work.
        let lost = lease.lost();
        let (end, watch) = match watch {
            Ok(mut watch) => {
                let work = Box::pin(self.work((&ticket, fence), &lease, &mut watch, (slots, &shutdown)));
                let end = tokio::select! {
                    end = work => end,
                    () = lost.cancelled() => Err(TicketError::Lost),
                };
                (end, Some(watch))
            }
            Err(error) => (Err(error.into()), None),
        };
        self.settle(token, (&ticket, fence), (lease, watch), end).await;
    }

    async fn work(
        &self,
        (ticket, fence): (&TicketKey, RunFence),
        lease: &TicketLease,
        watch: &mut LogWatch,
        (slots, shutdown): (&TicketSlots, &CancellationToken),
    ) -> Result<SessionEnd, TicketError> {
        let mut session = TicketSession::take_over(&self.driver, lease, ticket, fence, shutdown).await?;
        match session.run(watch, slots).await {
            Err(trouble) if trouble.is_newer() => {
                session.forget_takeover().await?;
                Err(trouble)
            }
            end => end,
        }
    }

    async fn settle(
        &self,
        token: WakeupToken<Trigger>,
        (ticket, fence): (&TicketKey, RunFence),
        (lease, watch): (TicketLease, Option<LogWatch>),
        end: Result<SessionEnd, TicketError>,
    ) {
        match end {
            Ok(SessionEnd::Settled { cursor }) => {
                // The lease goes first: after the acknowledgement another planner may take the ticket at
                // once.
                lease.release().await;
                if let Err(error) = token.finish().await {
                    tracing::warn!(
                        %ticket,
                        error = %format_error_chain(&error),
                        "token could not be acknowledged, it comes again"
                    );
                    return;
                }
                // A single server notifies of a record before it confirms a later acknowledgement. A notification of
                // several servers may be late or lost: then the waker holds the record, and wakes the ticket.
                if watch.is_none_or(|mut watch| watch.has_news()) {
                    self.check_again(ticket, cursor).await;
                }
            }
            // The lease goes first here, too: the returned token is delivered to another planner at
            // once.
            Ok(SessionEnd::Shutdown) => {
                lease.release().await;
                token.release().await;
            }
            // No ack, no nak and no release of the lease: all of them belong to the newer planner.
            Err(TicketError::Lost) => {
                tracing::debug!(%ticket, "the ticket was taken over");
                token.abandon();
            }
            Err(TicketError::Queue(newer @ queue::Error::Newer { .. })) => {
                let pause = self.queue.leave_to_newer(&newer, Some(ticket)).await;
                // Returns the token after a pause: only a planner of the newer release can read the record.
                lease.release().await;
                token.release_after(pause.unwrap_or(TROUBLE_PAUSE)).await;
            }
            Err(
                trouble @ TicketError::Queue(
                    queue::Error::Unavailable { .. }
                    | queue::Error::Full { .. }
                    | queue::Error::Topology { .. }
                    | queue::Error::Conflict,
                ),
            ) => {
                tracing::warn!(%ticket, error = %format_error_chain(&trouble), "work on the ticket pauses");
                lease.release().await;
                token.release_after(TROUBLE_PAUSE).await;
            }
            Err(
                trouble @ (TicketError::Illegal(_)
                | TicketError::Stuck(_)
                | TicketError::Queue(queue::Error::Corrupt { .. })),
            ) => {
                tracing::error!(%ticket, error = %format_error_chain(&trouble), "the ticket is quarantined");
                // The mark comes before the token is settled. Otherwise the next planner would repeat
                // the failure.
                let kept = self
                    .quarantine(ticket, fence, &format_error_chain(&trouble))
                    .await;
                lease.release().await;
                match kept {
                    // An error is harmless: the token returns, and the row is already marked.
                    Ok(()) => drop(token.finish().await),
                    Err(_) => token.release_after(TROUBLE_PAUSE).await,
                }
            }
        }
    }

    /// Wakes the ticket for a trigger between the last fold and the acknowledgement, which would have no
    /// token.
    async fn check_again(&self, ticket: &TicketKey, cursor: u64) {
        let triggers = self.queue.triggers();
        let woken = async {
            match triggers.last_sequence(ticket).await? {
                Some(last) if last > cursor => triggers.wake_beyond(ticket, last).await,
                Some(_) | None => Ok(()),
            }
        };
        if let Err(error) = woken.await {
            tracing::warn!(%ticket, error = %format_error_chain(&error), "ticket not woken again; the waker does it");
        }
    }

    /// Takes the ticket out of work until a person inspects it. The notice comes first and the mark last,
    /// so that a crash in between repeats both.
    async fn quarantine(&self, ticket: &TicketKey, fence: RunFence, reason: &str) -> Result<(), TicketError> {
        let table = self.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        let Some((mut row, revision)) = table.get(&ticket.to_string()).await? else {
            return Ok(());
        };
        if row.fence > fence {
            return Err(TicketError::Lost);
        }
        // A repeated quarantine for one reason must not post a second notice.
        if row.quarantined.as_deref() == Some(reason) {
            return Ok(());
        }
        let now = bootstrap::read_wall_clock();
        let id = OutboundId::quarantine(ticket, self.find_last_request(ticket, row.cursor).await?);
        let request = OutboundAction::Quarantined(report::TicketQuarantined {
            reason: reason.to_owned(),
        });
        let notice = OutboundRequest::notice(id, ticket.clone(), fence, now, request);
        self.queue.reports().append(&notice).await?;
        let letter = DeadLetter {
            what: RecordKind::Ticket,
            id: ticket.to_string(),
            ticket: Some(ticket.clone()),
            reason: reason.to_owned(),
            at: now,
        };
        self.queue
            .dead_letters()
            .publish(&letter, bytes::Bytes::new())
            .await?;
        row.quarantined = Some(reason.to_owned());
        table.put(&ticket.to_string(), &row, Some(revision)).await?;
        Ok(())
    }

    /// Returns the sequence of the last request beyond the cursor, or the cursor. The request that ended an earlier
    /// quarantine is beyond it if no planner saved a fold since.
    async fn find_last_request(&self, ticket: &TicketKey, cursor: u64) -> Result<u64, TicketError> {
        let triggers = self.queue.triggers().read_each_after(ticket, cursor).await?;
        let is_request = |(_, trigger): &&(u64, Result<Trigger, UnreadableRecord>)| {
            let readable = trigger.as_ref().ok();
            readable.is_some_and(|trigger| timers::ends_quarantine(&trigger.reason))
        };
        let last = triggers.iter().rfind(is_request);
        Ok(last.map_or(cursor, |(sequence, _)| *sequence))
    }
}
