//! End of a quarantine, and timers of runs that wait for a retry.

use std::time::Duration;

use domain::{Fact, RunId, RunStatus, StopReason, Timestamp, TriggerReason, cause::format_error_chain};

use super::session::TicketSession;
use crate::driver::TicketError;

// Clocks of planner and NATS differ: a timer must not be in the past when NATS receives it.
const SHORTEST: Duration = Duration::from_millis(250);

impl TicketSession<'_> {
    /// Ends a quarantine if a person requests a retry or the job again; returns true if it ended now.
    pub(super) async fn lift_quarantine(&mut self) -> Result<bool, TicketError> {
        self.seen = self.row.cursor;
        if self.row.quarantined.is_none() {
            return Ok(false);
        }
        let triggers = self.driver.queue.triggers();
        let read = || triggers.read_each_after(&self.ticket, self.row.cursor);
        let news = self.outlast("the ticket's triggers", read).await?;
        // A session that only inspects the quarantine settles its token up to this trigger, without a fold.
        self.seen = news.last().map_or(self.row.cursor, |(sequence, _)| *sequence);
        for unreadable in news.iter().filter_map(|(_, trigger)| trigger.as_ref().err()) {
            unreadable.clone().unless_newer()?;
        }
        let mut readable = news.iter().filter_map(|(_, trigger)| trigger.as_ref().ok());
        let asked = readable.any(|trigger| ends_quarantine(&trigger.reason));
        if asked {
            tracing::info!(ticket = %self.ticket, "the quarantine ends");
            self.row.quarantined = None;
            self.row.takeovers = 0;
        }
        Ok(asked)
    }

    /// Loads the journals of the live runs. After a quarantine, a run with an unusable journal ends, so
    /// that it does not block the ticket's other runs.
    pub(super) async fn load_live(&mut self) -> Result<(), TicketError> {
        let live: Vec<RunId> = self
            .row
            .pending
            .iter()
            .map(|pending| pending.run.clone())
            .collect();
        for run in live {
            match self.load(&run).await {
                Err(
                    broken @ (TicketError::Illegal(_) | TicketError::Queue(queue::Error::Corrupt { .. })),
                ) if self.lifted => {
                    tracing::error!(
                        %run,
                        error = %format_error_chain(&broken),
                        "run ended: its journal cannot be continued"
                    );
                    self.row
                        .finish(&run, StopReason::JournalUnreadable, bootstrap::read_wall_clock());
                    self.save().await?;
                }
                loaded => drop(loaded?),
            }
        }
        Ok(())
    }

    /// Resumes runs whose wait is over.
    pub(super) async fn wake_due(&mut self) -> Result<(), TicketError> {
        let now = bootstrap::read_wall_clock();
        for run in self.waiting() {
            if self.due(&run).await?.is_some_and(|due| due <= now) {
                self.append(
                    &run,
                    Fact::Retried {
                        by: None,
                        trigger: None,
                    },
                )
                .await?;
                self.mark(&run, RunStatus::Queued);
            }
        }
        // A wake-up has no effect while the session holds the token, so waiting runs try again by time.
        if self.slots_again.is_some_and(|again| again <= now) {
            self.slots_again = None;
            self.row.stop_waiting_for_slots();
        }
        Ok(())
    }

    /// Prepares the row before the session ends: the takeover count is reset, and a timer is set if a run
    /// waits for it. If the timer is lost, the sweeper reads the due time from the row.
    pub(super) async fn rest(&mut self) -> Result<(), TicketError> {
        let first = self.first_due().await?;
        // Row before timer: the sweeper needs the due time if the planner crashes between both.
        let is_new = self.row.due != first || self.row.takeovers > 0;
        (self.row.due, self.row.takeovers) = (first, 0);
        if is_new {
            self.save().await?;
        }
        if let Some(due) = first {
            let due = due.max(bootstrap::read_wall_clock().plus(SHORTEST));
            let timers = self.driver.queue.timers();
            self.outlast("a timer", || timers.set(&self.ticket, due)).await?;
        }
        Ok(())
    }

    /// Returns the earliest retry of the waiting runs.
    pub(super) async fn first_due(&mut self) -> Result<Option<Timestamp>, TicketError> {
        let mut first: Option<Timestamp> = None;
        for run in self.waiting() {
            let due = self.due(&run).await?;
            first = first.into_iter().chain(due).min();
        }
        Ok(first)
    }

    fn waiting(&self) -> Vec<RunId> {
        self.row.waiting_for_retry().map(|run| run.id.clone()).collect()
    }

    async fn due(&mut self, run: &RunId) -> Result<Option<Timestamp>, TicketError> {
        self.load(run).await?;
        let state = self.runs.get(run).map(|live| &live.state);
        Ok(state
            .and_then(|state| state.lifecycle().retry())
            .map(|retry| retry.due))
    }
}

/// Returns true for a request that ends a quarantine.
pub(super) const fn ends_quarantine(reason: &TriggerReason) -> bool {
    matches!(
        reason,
        TriggerReason::RetryRequested | TriggerReason::JobRequested(_)
    )
}
