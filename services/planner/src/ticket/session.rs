//! One planner's time with one ticket, between taking over and settling the token.

use std::collections::HashMap;

use domain::{Row, RunFence, RunId, RunStatus, StopReason, TicketKey, Trigger};
use lease::Lease;
use queue::{Bucket, KeyedLog, Revision, Watch};
use tokio_util::sync::CancellationToken;

use super::fold::{Step, cuts, fold, next_run};
use super::{journals::OUTAGE_PAUSE, mend};
use crate::driver::{Driver, Outcome, Trouble};
use crate::run::{RunState, decide};
use crate::telemetry;

/// How the time with a ticket ends well.
#[derive(Debug)]
pub(super) enum End {
    /// Every run waits or is over; triggers up to `cursor` are folded in.
    Settled { cursor: u64 },
    /// The planner shuts down.
    Shutdown,
}

/// How one step of a run ends.
enum Stepped {
    /// There is more to do.
    On,
    /// The run waits or is over.
    Still,
    /// Dropped in the middle: a trigger wants something else first.
    Cut,
    /// The planner shuts down.
    Shutdown,
}

/// A run whose journal is in memory.
pub(super) struct Live {
    pub(super) state: RunState,
    /// Stream sequence of its last entry.
    pub(super) last: u64,
}

pub(super) struct Session<'a> {
    pub(super) driver: &'a Driver,
    lease: &'a Lease,
    pub(super) ticket: TicketKey,
    pub(super) fence: RunFence,
    pub(super) shutdown: &'a CancellationToken,
    watch: Watch,
    pub(super) row: Row,
    revision: Option<Revision>,
    pub(super) runs: HashMap<RunId, Live>,
    /// A trigger may have come since the last fold.
    stale: bool,
    /// Stream sequence of the last trigger that was looked at.
    pub(super) seen: u64,
}

impl<'a> Session<'a> {
    /// Writes the fence into the row, then into the journal of each live run; only then may anything be done.
    ///
    /// # Errors
    /// [`Trouble::Lost`] when a newer planner was faster.
    pub(super) async fn take_over(
        driver: &'a Driver,
        lease: &'a Lease,
        ticket: &TicketKey,
        fence: RunFence,
        shutdown: &'a CancellationToken,
    ) -> Result<Self, Trouble> {
        let watch = driver.queue.triggers().watch(ticket).await?;
        let (row, revision) = mend::row_of(&driver.queue, ticket).await?;
        if row.fence > fence {
            return Err(Trouble::Lost);
        }
        let ticket = ticket.clone();
        let runs = HashMap::new();
        let mut session = Self {
            driver,
            lease,
            ticket,
            fence,
            shutdown,
            watch,
            row,
            revision,
            runs,
            stale: true,
            seen: 0,
        };
        session.row.fence = fence;
        let lifted = session.lift_quarantine().await?;
        // A token without a live run has nothing that could be stuck.
        if session.row.quarantined.is_none() && !session.row.pending.is_empty() {
            session.row.takeovers += 1;
        }
        session.save().await?;
        if session.row.takeovers > Row::MOST_TAKEOVERS {
            return Err(Trouble::Stuck(session.row.takeovers));
        }
        if session.row.quarantined.is_none() {
            session.load_live(lifted).await?;
        }
        Ok(session)
    }

    /// Drives the ticket's runs until each waits or is over.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) async fn run(&mut self) -> Result<End, Trouble> {
        if self.row.quarantined.is_some() {
            return Ok(End::Settled { cursor: self.seen });
        }
        loop {
            self.wake_due().await?;
            if self.stale {
                self.fold().await?;
            }
            let Some(run) = next_run(&self.row) else {
                if self.fold().await? {
                    continue;
                }
                self.rest().await?;
                return Ok(End::Settled {
                    cursor: self.row.cursor,
                });
            };
            if self
                .row
                .run(&run)
                .is_some_and(|summary| summary.status != RunStatus::Active)
            {
                self.mark(&run, RunStatus::Active);
                self.save().await?;
            }
            match self.step(&run).await? {
                Stepped::On => {}
                Stepped::Cut => self.stale = true,
                Stepped::Still => self.stand_still(&run).await?,
                Stepped::Shutdown => {
                    self.row.takeovers = 0;
                    self.save().await?;
                    return Ok(End::Shutdown);
                }
            }
        }
    }

    /// Folds new triggers into row and journals; true when there were any.
    async fn fold(&mut self) -> Result<bool, Trouble> {
        self.stale = false;
        let triggers = self
            .driver
            .queue
            .triggers()
            .read_each_after(&self.ticket, self.row.cursor)
            .await?;
        let Some((last, _)) = triggers.last() else {
            return Ok(false);
        };
        let last = *last;
        let triggers = self.readable(triggers).await?;
        let (row, steps) = fold(
            self.row.clone(),
            &self.ticket,
            &triggers,
            self.fence,
            bootstrap::now(),
        );
        for step in steps {
            self.follow(step).await?;
        }
        self.row = Row {
            takeovers: self.row.takeovers,
            cursor: last,
            ..row
        };
        self.save().await?;
        Ok(true)
    }

    async fn follow(&mut self, step: Step) -> Result<(), Trouble> {
        match step {
            Step::Open { run, trigger } => {
                if !self.load(&run).await? {
                    self.start(run, trigger).await?;
                }
                Ok(())
            }
            Step::Tell { run, fact } => {
                if self.load(&run).await? && self.runs.get(&run).is_some_and(|live| live.state.accepts(&fact))
                {
                    self.append(&run, *fact).await?;
                    self.close_superseded(&run).await;
                } else {
                    tracing::debug!(%run, fact = fact.name(), "run has no use for it");
                }
                Ok(())
            }
            Step::Notice(report) => {
                self.check()?;
                self.driver.queue.reports().append(&report).await?;
                Ok(())
            }
        }
    }

    /// A run that was ended from outside will not be driven again.
    async fn close_superseded(&self, run: &RunId) {
        if let Some(live) = self.runs.get(run).filter(|live| live.state.finished.is_some()) {
            self.driver.close(&live.state, self.fence).await;
        }
    }

    /// Takes one step of a run.
    async fn step(&mut self, run: &RunId) -> Result<Stepped, Trouble> {
        if self.shutdown.is_cancelled() {
            return Ok(Stepped::Shutdown);
        }
        if !self.load(run).await? {
            // The row knows a run that has no journal: the trigger's fold was saved, its journal is gone.
            self.row.finish(run, StopReason::Superseded, bootstrap::now());
            return Ok(Stepped::Cut);
        }
        self.check()?;
        let outcome = match self.act(run).await? {
            Acted::Outcome(outcome) => *outcome,
            Acted::Cut => return Ok(Stepped::Cut),
            Acted::Shutdown => return Ok(Stepped::Shutdown),
        };
        match outcome {
            Outcome::Fact(fact) => {
                self.append(run, *fact).await?;
                Ok(Stepped::On)
            }
            Outcome::Sent(id) => {
                if let Some(live) = self.runs.get_mut(run) {
                    live.state.sent(&id);
                }
                Ok(Stepped::On)
            }
            Outcome::Parked | Outcome::Over => Ok(Stepped::Still),
        }
    }

    /// Performs a run's action; a stop request or the shutdown cuts it.
    async fn act(&mut self, run: &RunId) -> Result<Acted, Trouble> {
        let Some(live) = self.runs.get(run) else {
            return Ok(Acted::Cut);
        };
        let perform = Box::pin(self.driver.perform(decide(&live.state), &live.state, self.fence));
        let triggers = self.driver.queue.triggers();
        tokio::select! {
            biased;
            outcome = perform => outcome.map(|outcome| Acted::Outcome(Box::new(outcome))),
            () = self.shutdown.cancelled() => Ok(Acted::Shutdown),
            () = cut(&mut self.watch, &mut self.stale, &triggers, &self.ticket, self.row.cursor) => Ok(Acted::Cut),
        }
    }

    pub(super) fn mark(&mut self, run: &RunId, status: RunStatus) {
        let turns = self.turns(run);
        if let Some(summary) = self.row.run_mut(run) {
            summary.status = status;
            summary.turns = turns;
        }
    }

    fn turns(&self, run: &RunId) -> u32 {
        self.runs.get(run).map_or(0, |live| {
            u32::try_from(live.state.turns.len()).unwrap_or(u32::MAX)
        })
    }

    /// A run that waits holds nothing but, for a short report, its workspace; one that is over holds nothing.
    async fn stand_still(&mut self, run: &RunId) -> Result<(), Trouble> {
        let Some(live) = self.runs.get(run) else {
            return Ok(());
        };
        match (live.state.finished.clone(), live.state.parked.clone()) {
            (Some(reason), _) => {
                self.driver.close(&live.state, self.fence).await;
                telemetry::run_finished(live.state.job().as_str(), reason.as_str());
                tracing::info!(%run, reason = reason.as_str(), "run finished");
                self.mark(run, RunStatus::Active);
                self.row.finish(run, reason, bootstrap::now());
            }
            (None, Some(waits_for)) => {
                if waits_for == "decision" || waits_for == "retry" {
                    self.driver.close(&live.state, self.fence).await;
                }
                self.mark(run, RunStatus::Parked { waits_for });
            }
            (None, None) => self.stale = true,
        }
        self.save().await
    }

    pub(super) fn check(&self) -> Result<(), Trouble> {
        self.lease.check().map_err(|_| Trouble::Lost)
    }

    pub(super) async fn save(&mut self) -> Result<(), Trouble> {
        self.check()?;
        let table = self.driver.queue.table::<Row>(Bucket::Tickets);
        self.revision = Some(
            table
                .put(&self.ticket.to_string(), &self.row, self.revision)
                .await?,
        );
        Ok(())
    }
}

/// Waits for a trigger that cuts the step in hand; others only make the last fold stale. An outage of NATS cuts nothing.
async fn cut(
    watch: &mut Watch,
    stale: &mut bool,
    triggers: &KeyedLog<Trigger>,
    ticket: &TicketKey,
    cursor: u64,
) {
    loop {
        watch.changed().await;
        *stale = true;
        loop {
            match triggers.read_each_after(ticket, cursor).await {
                Ok(news) if news.iter().any(|(_, trigger)| trigger.as_ref().is_ok_and(cuts)) => return,
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%ticket, %error, "new triggers cannot be read yet, the step goes on");
                    tokio::time::sleep(OUTAGE_PAUSE).await;
                }
            }
        }
    }
}

/// What became of performing an action.
enum Acted {
    Outcome(Box<Outcome>),
    Cut,
    Shutdown,
}
