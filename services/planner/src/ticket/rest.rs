//! The end of a quarantine, and the timer for runs that wait to try again.

use std::time::Duration;

use domain::{Fact, Reason, RunId, RunStatus, StopReason, Timestamp, cause::chain};

use super::session::Session;
use crate::driver::Trouble;

/// Clocks differ: a timer is never set for an instant that may be over already.
const SHORTEST: Duration = Duration::from_millis(250);

impl Session<'_> {
    /// A quarantine ends when a person asks for a retry or for the job once more; true when one ended now.
    pub(super) async fn lift_quarantine(&mut self) -> Result<bool, Trouble> {
        self.seen = self.row.cursor;
        if self.row.quarantined.is_none() {
            return Ok(false);
        }
        let triggers = self.driver.queue.triggers();
        let read = || triggers.read_each_after(&self.ticket, self.row.cursor);
        let news = self.outlast("the ticket's triggers", read).await?;
        self.seen = news.last().map_or(self.row.cursor, |(sequence, _)| *sequence);
        for unreadable in news.iter().filter_map(|(_, trigger)| trigger.as_ref().err()) {
            unreadable.clone().unless_newer()?;
        }
        let mut readable = news.iter().filter_map(|(_, trigger)| trigger.as_ref().ok());
        let asked = readable
            .any(|trigger| matches!(trigger.reason, Reason::RetryRequested | Reason::JobRequested(_)));
        if asked {
            tracing::info!(ticket = %self.ticket, "the quarantine ends");
            self.row.quarantined = None;
            self.row.takeovers = 0;
        }
        Ok(asked)
    }

    /// Takes the journals of the live runs. After a quarantine, a run whose journal cannot be continued ends, so that
    /// it does not keep the ticket's other runs from theirs.
    pub(super) async fn load_live(&mut self) -> Result<(), Trouble> {
        let live: Vec<RunId> = self
            .row
            .pending
            .iter()
            .map(|pending| pending.run.clone())
            .collect();
        for run in live {
            match self.load(&run).await {
                Err(broken @ (Trouble::Illegal(_) | Trouble::Queue(queue::Error::Corrupt { .. })))
                    if self.lifted =>
                {
                    tracing::error!(
                        %run,
                        error = %chain(&broken),
                        "run ended: its journal cannot be continued"
                    );
                    self.row
                        .finish(&run, StopReason::JournalUnreadable, bootstrap::now());
                    self.save().await?;
                }
                loaded => drop(loaded?),
            }
        }
        Ok(())
    }

    /// Runs whose wait is over go on.
    pub(super) async fn wake_due(&mut self) -> Result<(), Trouble> {
        let now = bootstrap::now();
        for run in self.waiting() {
            if self.due(&run).await?.is_some_and(|due| due <= now) {
                self.append(&run, Fact::Retried { by: None }).await?;
                self.mark(&run, RunStatus::Queued);
            }
        }
        if self.slots_again.is_some_and(|again| again <= now) {
            self.slots_again = None;
            self.row.stop_waiting_for_slots();
        }
        Ok(())
    }

    /// The last step before the ticket is left: no planner was brought down, and the timer is set when a run waits for
    /// it. Should the timer be lost, the sweeper finds the due time in the row.
    pub(super) async fn rest(&mut self) -> Result<(), Trouble> {
        let first = self.first_due().await?;
        let is_new = self.row.due != first || self.row.takeovers > 0;
        (self.row.due, self.row.takeovers) = (first, 0);
        if is_new {
            self.save().await?;
        }
        if let Some(due) = first {
            let due = due.max(bootstrap::now().plus(SHORTEST));
            let timers = self.driver.queue.timers();
            self.outlast("a timer", || timers.set(&self.ticket, due)).await?;
        }
        Ok(())
    }

    /// When the first of the runs that wait for it is tried again.
    pub(super) async fn first_due(&mut self) -> Result<Option<Timestamp>, Trouble> {
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

    async fn due(&mut self, run: &RunId) -> Result<Option<Timestamp>, Trouble> {
        self.load(run).await?;
        let state = self.runs.get(run).map(|live| &live.state);
        Ok(state
            .and_then(|state| state.retry.as_ref())
            .map(|retry| retry.due))
    }
}
