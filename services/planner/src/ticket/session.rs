//! Session of one planner with one ticket, from takeover to settling the token.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use domain::{
    Job, RunFence, RunId, RunStatus, StopReason, TicketKey, TicketRow, Timestamp, Trigger, WaitCondition,
    cause::format_error_chain,
};
use futures::{Stream, StreamExt as _, stream};
use lease::TicketLease;
use queue::{KeyValueBucket, LogWatch, TableRevision, UnreadableRecord};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::lanes::{RunningSteps, next_runs};
use super::outcome_wait::{find_wait_limit, reach_wait_end};
use super::row;
use crate::driver::{ReadAhead, RunDriver, StepContext, StepOutcome, TicketError};
use crate::run::{PlannerRunState, RunAction, decide_action};
use crate::snapshots::{distinct_bytes, list_packs};
use crate::telemetry;
use crate::ticket_slots::TicketSlots;

// Pause between two attempts to get a slot while the session holds the ticket.
const SLOTS_AGAIN: Duration = Duration::from_secs(2);
// docs/internals/lanes.md promises that the outcome of a step survives an outage of up to a minute.
const OUTAGE_LIMIT: Duration = Duration::from_secs(60);
const OUTAGE_PAUSE: Duration = Duration::from_millis(500);

/// Regular end of a session.
#[derive(Debug)]
pub(super) enum SessionEnd {
    /// Every run waits or is finished; triggers up to `cursor` are folded.
    Settled { cursor: u64 },
    /// The planner shuts down.
    Shutdown,
}

/// Run with its journal in memory.
pub(super) struct LoadedRun {
    /// Shared with the running step, which keeps the state that it was decided on.
    pub(super) state: Arc<PlannerRunState>,
    /// Stream sequence of the last entry.
    pub(super) last: u64,
    /// Reads that run before their turn.
    pub(super) ahead: Arc<ReadAhead>,
    /// Time at which this session appended the last report of the run; absent without one.
    reported_at: Option<Instant>,
}

impl LoadedRun {
    pub(super) fn new(state: Arc<PlannerRunState>, last: u64) -> Self {
        Self {
            state,
            last,
            ahead: Arc::default(),
            reported_at: None,
        }
    }
}

/// Triggers of a ticket as its log has them, by stream sequence.
pub(super) type ReadTriggers = Vec<(u64, Result<Trigger, UnreadableRecord>)>;

pub(super) struct TicketSession<'a> {
    pub(super) driver: &'a Arc<RunDriver>,
    lease: &'a TicketLease,
    pub(super) ticket: TicketKey,
    pub(super) fence: RunFence,
    pub(super) shutdown: &'a CancellationToken,
    pub(super) row: TicketRow,
    revision: Option<TableRevision>,
    pub(super) runs: HashMap<RunId, LoadedRun>,
    /// True if a trigger may have arrived since the last fold.
    pub(super) stale: bool,
    /// Triggers for the first fold, which the takeover has read; absent after it.
    pub(super) first_triggers: Option<ReadTriggers>,
    /// Stream sequence of the last inspected trigger.
    pub(super) seen: u64,
    /// Next attempt of runs that wait for a slot while other runs of the ticket have steps: the session
    /// holds the token, so a wake-up has no effect.
    pub(super) slots_again: Option<Timestamp>,
    /// True if a quarantine ended with this takeover.
    pub(super) lifted: bool,
    /// True if the row has changes that are saved before the next decision about a run.
    pub(super) is_unsaved: bool,
}

impl<'a> TicketSession<'a> {
    /// Takes a ticket over: writes the fence into the row; the journals of live runs follow. Only reads may
    /// happen before.
    ///
    /// # Errors
    /// [`TicketError::Lost`] if a newer planner owns the ticket.
    pub(super) async fn take_over(
        driver: &'a Arc<RunDriver>,
        lease: &'a TicketLease,
        ticket: &TicketKey,
        fence: RunFence,
        shutdown: &'a CancellationToken,
    ) -> Result<Self, TicketError> {
        let (row, revision) = row::read_row(&driver.queue, ticket).await?;
        if row.fence > fence {
            return Err(TicketError::Lost);
        }
        let mut session = Self {
            driver,
            lease,
            ticket: ticket.clone(),
            fence,
            shutdown,
            row,
            revision,
            runs: HashMap::new(),
            stale: true,
            first_triggers: None,
            seen: 0,
            slots_again: None,
            lifted: false,
            is_unsaved: false,
        };
        session.row.fence = fence;
        let lifted = session.lift_quarantine().await?;
        // A token without a live run cannot be stuck.
        if session.row.quarantined.is_none() && !session.row.pending.is_empty() {
            session.row.takeovers += 1;
        }
        // Counts the takeover before any work, so that a crash of this planner is counted. The triggers are read
        // meanwhile: a planner that lost the ticket changes none of them.
        let (triggers, cursor) = (driver.queue.triggers(), session.row.cursor);
        let (saved, read) = tokio::join!(session.save(), triggers.read_expected_after(ticket, cursor));
        saved?;
        // A failed read is repeated by the fold.
        session.first_triggers = read.ok();
        // After the save: the quarantine needs the count in the row, and this planner may be the next to
        // crash.
        if session.row.takeovers > TicketRow::MOST_TAKEOVERS {
            return Err(TicketError::Stuck(session.row.takeovers));
        }
        session.lifted = lifted;
        Ok(session)
    }

    /// Does not count a takeover that ended because of a newer release's record as a crash.
    pub(super) async fn forget_takeover(&mut self) -> Result<(), TicketError> {
        self.row.takeovers = self.row.takeovers.saturating_sub(1);
        self.save().await
    }

    /// Drives the ticket's runs, in parallel for different lanes, until each waits or is finished. If one waits for a
    /// report that the session appended, the outcome may continue the session, see [`super::outcome_wait`].
    ///
    /// # Errors
    /// [`TicketError`]; the running steps are dropped then.
    pub(super) async fn run(
        &mut self,
        watch: &mut LogWatch,
        slots: &TicketSlots,
    ) -> Result<SessionEnd, TicketError> {
        if self.row.quarantined.is_some() {
            return Ok(SessionEnd::Settled { cursor: self.seen });
        }
        self.load_live().await?;
        // Slots may be free again since the last session, so those runs try again at once.
        self.row.stop_waiting_for_slots();
        let mut steps = RunningSteps::default();
        while self.drive(&mut steps, watch, slots).await? {
            // Folds a last time before the end if a trigger has arrived since.
            if watch.has_news() && self.fold(&mut steps).await? {
                continue;
            }
            self.rest().await?;
            return Ok(SessionEnd::Settled {
                cursor: self.row.cursor,
            });
        }
        self.give_back(steps).await
    }

    /// Drives the runs until none has a step and the wait for outcomes is over; returns false if a shutdown left steps.
    async fn drive(
        &mut self,
        steps: &mut RunningSteps,
        watch: &mut LogWatch,
        slots: &TicketSlots,
    ) -> Result<bool, TicketError> {
        let mut changes = pin!(watch_changes(watch));
        let shutdown = self.shutdown;
        loop {
            self.wake_due().await?;
            if self.stale {
                self.fold(steps).await?;
            }
            self.advance(steps).await?;
            self.save_changes().await?;
            if shutdown.is_cancelled() {
                return Ok(false);
            }
            if steps.is_empty() {
                if self.stale || self.await_outcome(&mut changes, slots).await? {
                    continue;
                }
                return Ok(true);
            }
            // Read again in each round, because a fold or a step may have added or ended a wait.
            let due = self.first_due().await?.into_iter().chain(self.slots_again).min();
            tokio::select! {
                (run, outcome) = steps.next() => self.apply_outcome(&run, outcome?, steps).await?,
                Some(()) = changes.next() => self.stale = true,
                () = sleep_until_due(due) => {}
                () = shutdown.cancelled() => return Ok(false),
            }
        }
    }

    /// Waits for the outcome of a report that this session appended, or for another event of the ticket. Returns false
    /// if there is nothing to wait for or the wait is over.
    ///
    /// The runs are parked and the row is saved, so this is the end of the session but for the lease and the token.
    async fn await_outcome(
        &mut self,
        changes: &mut (impl Stream<Item = ()> + Unpin),
        slots: &TicketSlots,
    ) -> Result<bool, TicketError> {
        // The wake-up for a free slot of an executor has no effect while the session holds the token.
        if self.slots_again.is_some() {
            return Ok(false);
        }
        let reported_at = |run: &RunId| self.runs.get(run)?.reported_at;
        let Some(limit) = find_wait_limit(&self.row, reported_at) else {
            return Ok(false);
        };
        let due = self.first_due().await?;
        tokio::select! {
            Some(()) = changes.next() => self.stale = true,
            () = sleep_until_due(due) => {}
            // A shutdown finds nothing to give back: the outcome wakes another planner.
            () = reach_wait_end(limit, slots, self.shutdown) => return Ok(false),
        }
        Ok(true)
    }

    async fn give_back(&mut self, steps: RunningSteps) -> Result<SessionEnd, TicketError> {
        drop(steps);
        // A return on shutdown is not a crash.
        self.row.takeovers = 0;
        self.save().await?;
        Ok(SessionEnd::Shutdown)
    }

    /// Starts a step in every lane without one. An action that waits for nothing is performed at once.
    async fn advance(&mut self, steps: &mut RunningSteps) -> Result<(), TicketError> {
        while !self.shutdown.is_cancelled() {
            let idle = next_runs(&self.row).into_iter().find(|run| !steps.has(run));
            let Some(run) = idle else { break };
            self.activate(&run).await?;
            if !self.load(&run).await? {
                // The saved row names a run whose journal is missing.
                self.row
                    .finish(&run, StopReason::JournalLost, bootstrap::read_wall_clock());
                self.save().await?;
                continue;
            }
            let Some(step) = self.build_step(&run) else { break };
            let action = decide_action(&step.state);
            self.check()?;
            if action.is_immediate() {
                let outcome = self.driver.perform(action, &step).await?;
                // The state has no other owner then, so `apply` changes it without a copy.
                drop(step);
                self.apply_outcome(&run, outcome, steps).await?;
            } else {
                steps.begin(run, perform_with_patience(Arc::clone(self.driver), action, step));
            }
        }
        Ok(())
    }

    /// Starts the model call that entries request before they are stored, so that it does not wait for NATS.
    ///
    /// The call changes nothing outside, and its outcome is appended after the entries. A planner that lost the ticket
    /// cannot store them; its session ends then and cancels the call.
    pub(super) fn start_requested_turn(&self, run: &RunId, steps: &mut RunningSteps) {
        if self.shutdown.is_cancelled() {
            return;
        }
        let Some(step) = self.build_step(run) else { return };
        let action = decide_action(&step.state);
        if matches!(action, RunAction::AskModel { .. }) {
            steps.begin(
                run.clone(),
                perform_with_patience(Arc::clone(self.driver), action, step),
            );
        }
    }

    /// Returns the context of a run's next step; `None` if the run is not loaded.
    fn build_step(&self, run: &RunId) -> Option<StepContext> {
        let live = self.runs.get(run)?;
        Some(StepContext {
            state: Arc::clone(&live.state),
            fence: self.fence,
            kept_elsewhere: self.kept_beside(run),
            ahead: Arc::clone(&live.ahead),
        })
    }

    /// Returns the bytes of the snapshots that the ticket's other live runs keep.
    fn kept_beside(&self, run: &RunId) -> u64 {
        let others = self
            .runs
            .iter()
            .filter(|(other, live)| *other != run && live.state.lifecycle().finished().is_none());
        others
            .map(|(_, live)| distinct_bytes(&list_packs(&live.state)))
            .sum()
    }

    /// Marks a run as active. Its row is saved before any decision: a planner that fails there must count as a
    /// takeover, and a quarantine must not end because of triggers that are folded.
    async fn activate(&mut self, run: &RunId) -> Result<(), TicketError> {
        if self
            .row
            .run(run)
            .is_some_and(|run| run.status != RunStatus::Active)
        {
            self.mark(run, RunStatus::Active);
            self.is_unsaved = true;
        }
        self.save_changes().await
    }

    /// Applies the outcome of a step.
    async fn apply_outcome(
        &mut self,
        run: &RunId,
        outcome: StepOutcome,
        steps: &mut RunningSteps,
    ) -> Result<(), TicketError> {
        match outcome {
            StepOutcome::Fact(fact) => self.record(run, vec![*fact], steps).await,
            StepOutcome::Facts(facts) => self.record(run, facts, steps).await,
            StepOutcome::Charged { fact, settled } => self.record_charged(run, *fact, settled).await,
            // Not a fact, because sending a report twice is harmless.
            StepOutcome::Sent(id) => {
                if let Some(live) = self.runs.get_mut(run) {
                    Arc::make_mut(&mut live.state).sent(&id);
                    live.reported_at = Some(Instant::now());
                }
                Ok(())
            }
            StepOutcome::Parked | StepOutcome::Over => self.settle_run(run).await,
            StepOutcome::AwaitsSlot => {
                let waits_for = WaitCondition::Slot;
                self.mark(run, RunStatus::Parked { waits_for });
                self.slots_again = Some(bootstrap::read_wall_clock().plus(SLOTS_AGAIN));
                self.save().await
            }
        }
    }

    pub(super) fn mark(&mut self, run: &RunId, status: RunStatus) {
        let state = self.runs.get(run).map(|live| &live.state);
        let turns = state.map_or(0, |state| {
            u32::try_from(state.conversation().turn_count()).unwrap_or(u32::MAX)
        });
        if let Some(branch) = state.and_then(|state| state.source().branch()) {
            self.row.set_branch(run, branch);
        }
        if let Some(summary) = self.row.run_mut(run) {
            summary.status = status;
            summary.turns = turns;
        }
    }

    /// Marks a run as waiting or finished. A waiting run holds at most its workspace, for a short report; a
    /// finished one holds nothing.
    async fn settle_run(&mut self, run: &RunId) -> Result<(), TicketError> {
        let Some(live) = self.runs.get(run) else {
            return Ok(());
        };
        match (
            live.state.lifecycle().finished().cloned(),
            live.state.lifecycle().parked(),
        ) {
            (Some(reason), _) => {
                self.driver.close(&live.state, self.fence).await;
                self.driver.snapshots.forget(run);
                telemetry::count_finished_run(live.state.job().as_str(), reason.as_str());
                tracing::info!(%run, reason = reason.as_str(), "run finished");
                // A ticket ends with the notice that its pull request was merged or closed.
                if live.state.job() == Job::Finish && reason == StopReason::Completed {
                    self.count_lead_time();
                }
                // `mark` copies branch and turns into the row. `finish` then sets the final status.
                self.mark(run, RunStatus::Active);
                self.row.finish(run, reason, bootstrap::read_wall_clock());
            }
            (None, Some(waits_for)) => {
                // A wait for a person may last days; the slot is for other runs.
                if !waits_for.keeps_workspace() {
                    self.driver.close(&live.state, self.fence).await;
                }
                self.mark(run, RunStatus::Parked { waits_for });
            }
            // The run has changed since the decision, so it is decided again.
            (None, None) => self.stale = true,
        }
        self.save().await
    }

    /// Records the lead time from the row's oldest run. The row keeps twenty runs, so the time of a longer
    /// ticket is too short.
    fn count_lead_time(&self) {
        if let Some(first) = self.row.runs.first() {
            telemetry::record_lead_time(bootstrap::read_wall_clock().since(first.started_at));
        }
    }

    pub(super) fn check(&self) -> Result<(), TicketError> {
        self.lease.check().map_err(|_| TicketError::Lost)
    }

    /// Repeats an operation on NATS during an outage.
    pub(super) async fn outlast<T, F>(
        &self,
        what: &'static str,
        operation: impl Fn() -> F,
    ) -> Result<T, TicketError>
    where
        F: Future<Output = Result<T, queue::Error>>,
    {
        let mut patience = OutagePatience::new(what);
        loop {
            match operation().await {
                Ok(done) => return Ok(done),
                Err(error) => patience.pause(error.into(), self.shutdown).await?,
            }
            self.check()?;
        }
    }

    /// Saves the row if it has unsaved changes.
    async fn save_changes(&mut self) -> Result<(), TicketError> {
        if self.is_unsaved {
            self.save().await
        } else {
            Ok(())
        }
    }

    /// Saves the row. After an outage the last attempt may have succeeded; a row with our fence is ours.
    pub(super) async fn save(&mut self) -> Result<(), TicketError> {
        let table = self.driver.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        let key = self.ticket.to_string();
        let mut patience = OutagePatience::new("the ticket's row");
        let mut is_repeated = false;
        loop {
            self.check()?;
            match table.put(&key, &self.row, self.revision).await {
                Ok(revision) => {
                    self.revision = Some(revision);
                    self.is_unsaved = false;
                    return Ok(());
                }
                // An attempt without a response may have reached NATS later.
                Err(queue::Error::Conflict) if is_repeated => {
                    let found = self.outlast("the ticket's row", || table.get(&key)).await?;
                    let ours = found.filter(|(row, _)| row.fence == self.fence);
                    self.revision = Some(ours.ok_or(TicketError::Lost)?.1);
                }
                // A conflict at the first attempt is not an outage: another planner wrote the row, and
                // `pause` returns `Lost`.
                Err(error) => {
                    patience.pause(error.into(), self.shutdown).await?;
                    is_repeated = true;
                }
            }
        }
    }
}

/// Time limit for the retries of one operation.
struct OutagePatience {
    what: &'static str,
    since: Instant,
}

impl OutagePatience {
    fn new(what: &'static str) -> Self {
        Self {
            what,
            since: Instant::now(),
        }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The given error if it is not an outage, if the outage lasts too long, and on shutdown.
    async fn pause(&mut self, trouble: TicketError, shutdown: &CancellationToken) -> Result<(), TicketError> {
        if !trouble.is_outage() || self.since.elapsed() > OUTAGE_LIMIT {
            return Err(trouble);
        }
        tracing::warn!(what = self.what, error = %format_error_chain(&trouble), "nats does not answer, trying again");
        match shutdown.run_until_cancelled(sleep(OUTAGE_PAUSE)).await {
            Some(()) => Ok(()),
            None => Err(trouble),
        }
    }
}

/// Performs an action. During an outage of NATS it repeats the action under the same ids, so nothing
/// happens twice.
async fn perform_with_patience(
    driver: Arc<RunDriver>,
    action: RunAction,
    step: StepContext,
) -> Result<StepOutcome, TicketError> {
    let mut patience = OutagePatience::new("a step");
    loop {
        match driver.perform(action.clone(), &step).await {
            // On shutdown the session aborts this task.
            Err(trouble) => patience.pause(trouble, &CancellationToken::new()).await?,
            performed => return performed,
        }
    }
}

/// Returns a stream with an item for each append to the ticket's triggers, or for several at once.
fn watch_changes(watch: &mut LogWatch) -> impl Stream<Item = ()> {
    stream::unfold(watch, |watch| async move {
        watch.changed().await;
        Some(((), watch))
    })
}

async fn sleep_until_due(due: Option<Timestamp>) {
    match due {
        Some(due) => sleep(due.since(bootstrap::read_wall_clock())).await,
        None => std::future::pending().await,
    }
}
