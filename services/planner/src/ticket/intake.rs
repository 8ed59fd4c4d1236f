//! Intake of triggers: the fold into the row and into the journals of the runs that they concern. Unreadable
//! triggers become dead letters, so that they do not hold up their ticket.

use std::sync::Arc;

use domain::{
    Fact, Job, JournalEntry, OutboundAction, OutboundId, OutboundRequest, RecordKind, RunFence, RunId,
    TicketRow, Trigger, report,
};
use queue::{DeadLetter, UnreadableRecord};
use tokio::task::JoinHandle;

use super::fold::{FoldStep, fold_triggers};
use super::lanes::RunningSteps;
use super::session::{LoadedRun, ReadTriggers, TicketSession};
use super::step_entries::{MOST_TOGETHER, StepEntries};
use crate::driver::TicketError;
use crate::run::PlannerRunState;

impl TicketSession<'_> {
    /// Folds new triggers into row and journals; returns true if there were any.
    pub(super) async fn fold(&mut self, under_way: &mut RunningSteps) -> Result<bool, TicketError> {
        // Before the read: a trigger during the read counts as new.
        self.stale = false;
        let triggers = match self.first_triggers.take() {
            Some(triggers) => triggers,
            None => {
                // A trigger was announced nearly always.
                let log = self.driver.queue.triggers();
                let read = || log.read_expected_after(&self.ticket, self.row.cursor);
                self.outlast("the ticket's triggers", read).await?
            }
        };
        let Some((last, _)) = triggers.last() else {
            return Ok(false);
        };
        let last = *last;
        let triggers = self.readable(triggers).await?;
        let now = bootstrap::read_wall_clock();
        let (row, steps) = fold_triggers(self.row.clone(), &self.ticket, &triggers, self.fence, now);
        // Steps before the row: a crash between both repeats the fold, whose facts the journals already
        // have.
        for step in steps {
            self.follow(step, under_way).await?;
        }
        // The steps may reset `takeovers` in the session's row, which the folded row does not know.
        self.row = TicketRow {
            takeovers: self.row.takeovers,
            cursor: last,
            ..row
        };
        // Saved with the activation of the runs that the fold made ready. A crash before repeats the fold.
        self.is_unsaved = true;
        Ok(true)
    }

    async fn follow(&mut self, step: FoldStep, under_way: &mut RunningSteps) -> Result<(), TicketError> {
        match step {
            FoldStep::Open { run, trigger } => self.open(run, trigger).await,
            FoldStep::Pass { run, fact } => self.pass_fact(&run, *fact, under_way).await,
            FoldStep::Notice(report) => {
                self.check()?;
                let reports = self.driver.queue.reports();
                self.outlast("a notice", || reports.append(&report)).await?;
                Ok(())
            }
        }
    }

    /// Starts a run. Loads it instead if a fold before a crash has started it.
    async fn open(&mut self, run: RunId, trigger: Box<Trigger>) -> Result<(), TicketError> {
        if self.runs.contains_key(&run) {
            return Ok(());
        }
        // Not read first: nearly every run is new, and only the leader decides that its journal is empty.
        match self.start(run.clone(), trigger).await {
            Err(TicketError::Lost) => {}
            started => return started,
        }
        // The lease may be lost instead.
        self.check()?;
        self.load(&run).await?;
        // A newer planner may have started the run a moment ago. This one must not append to its journal.
        match self.runs.get(&run) {
            Some(live) if live.state.journal.fence <= self.fence => Ok(()),
            Some(_) | None => Err(TicketError::Lost),
        }
    }

    async fn pass_fact(
        &mut self,
        run: &RunId,
        fact: Fact,
        under_way: &mut RunningSteps,
    ) -> Result<(), TicketError> {
        if !self.load(run).await? || !self.runs.get(run).is_some_and(|live| live.state.accepts(&fact)) {
            tracing::debug!(%run, fact = fact.name(), "run has no use for it");
            return Ok(());
        }
        let ends_the_step = matches!(
            fact,
            Fact::StopRequested { .. } | Fact::RunFinished { .. } | Fact::HeadMoved { .. }
        );
        // The step is canceled before the fact is appended, so no outcome of it follows the fact.
        if ends_the_step {
            under_way.cancel(run).await;
        }
        let moved = matches!(fact, Fact::HeadMoved { .. });
        let before = self
            .runs
            .get(run)
            .filter(|_| moved)
            .map(|live| Arc::clone(&live.state));
        self.append(run, fact).await?;
        if let Some(before) = before {
            // A restarted run opens another workspace on the new head.
            self.driver.close(&before, self.fence).await;
        }
        // A run that is ended from outside is not driven again, so its workspace is closed here.
        if let Some(live) = self
            .runs
            .get(run)
            .filter(|live| live.state.lifecycle().finished().is_some())
        {
            self.driver.close(&live.state, self.fence).await;
        }
        Ok(())
    }

    /// Returns the readable triggers. The others become dead letters with a notice on the ticket.
    ///
    /// # Errors
    /// [`TicketError::Queue`] also when a newer release wrote a trigger: a planner of that release handles them
    /// all.
    async fn readable(&self, triggers: ReadTriggers) -> Result<Vec<(u64, Trigger)>, TicketError> {
        let mut readable = Vec::with_capacity(triggers.len());
        for (sequence, trigger) in triggers {
            match trigger {
                Ok(trigger) => readable.push((sequence, trigger)),
                Err(unreadable) => self.set_aside(&unreadable.unless_newer()?).await?,
            }
        }
        Ok(readable)
    }

    async fn set_aside(&self, unreadable: &UnreadableRecord) -> Result<(), TicketError> {
        // The lease may be lost since the read: only the ticket's owner moves records to the dead letters.
        self.check()?;
        let (ticket, sequence, queue) = (&self.ticket, unreadable.sequence(), &self.driver.queue);
        tracing::error!(%ticket, problem = unreadable.problem(), "trigger set aside");
        let advice = "a planner that can read it takes it up after `journeyman dead retry`";
        let (id, now) = (format!("{ticket} at {sequence}"), bootstrap::read_wall_clock());
        let what = RecordKind::Trigger;
        let letter = DeadLetter::about(unreadable, what, id, Some(ticket.clone()), advice, now);
        let letters = queue.dead_letters();
        self.outlast("a dead letter", || {
            letters.publish_unreadable(&letter, unreadable)
        })
        .await?;
        let id = OutboundId::unreadable(what, ticket, sequence);
        let request = OutboundAction::Unreadable(report::UnreadableRecordNotice {
            what,
            is_poison: false,
        });
        let notice = OutboundRequest::notice(id, ticket.clone(), self.fence, now, request);
        let reports = queue.reports();
        self.outlast("a notice", || reports.append(&notice)).await?;
        Ok(())
    }

    /// Reads a run's journal and takes the run over; returns false if it has none.
    pub(super) async fn load(&mut self, run: &RunId) -> Result<bool, TicketError> {
        if self.runs.contains_key(run) {
            return Ok(true);
        }
        let journal = self.driver.queue.journal();
        let entries = self.outlast("a journal", || journal.read(run)).await?;
        let Some(state) = PlannerRunState::fold(run, entries.iter().map(|(_, entry)| entry))? else {
            return Ok(false);
        };
        let last = entries.last().map_or(0, |(sequence, _)| *sequence);
        let foreign = state.lifecycle().finished().is_none() && state.journal.fence < self.fence;
        let state = Arc::new(state);
        self.runs.insert(run.clone(), LoadedRun::new(state, last));
        // Fences the former planner: its next append fails by the journal's sequence.
        if foreign {
            self.append(run, Fact::TakenOver { fence: self.fence }).await?;
        }
        Ok(true)
    }

    async fn start(&mut self, run: RunId, trigger: Box<Trigger>) -> Result<(), TicketError> {
        self.check()?;
        let job = trigger.reason.job().map_or("none", Job::as_str);
        // Sequence 0 expects an empty journal, so two planners cannot both start the run.
        let entry = build_entry(self.fence, 0, Fact::RunStarted { trigger });
        let last = self.write(&run, 0, std::slice::from_ref(&entry)).await?;
        tracing::info!(%run, job, "run started");
        if let Some(state) = PlannerRunState::fold(&run, [&entry])? {
            let state = Arc::new(state);
            self.runs.insert(run, LoadedRun::new(state, last));
        }
        Ok(())
    }

    /// Appends a fact to the journal.
    pub(super) async fn append(&mut self, run: &RunId, fact: Fact) -> Result<(), TicketError> {
        // The step that follows from the fact is decided when the run has its turn.
        let joined = self.join_entries(run, vec![fact], 1)?;
        self.store_entries(run, joined).await
    }

    /// Appends the facts of a step to the journal, together with the facts that follow from them at once. A model
    /// call that they request starts before they are stored.
    pub(super) async fn record(
        &mut self,
        run: &RunId,
        facts: Vec<Fact>,
        steps: &mut RunningSteps,
    ) -> Result<(), TicketError> {
        let joined = self.join_entries(run, facts, MOST_TOGETHER)?;
        if joined.has_later_turn() {
            self.start_requested_turn(run, steps);
        }
        self.store_entries(run, joined).await
    }

    /// Appends the fact of a model call like [`Self::record`] while the call's budget is settled. A model call that
    /// follows starts after both: with the reservation of the call before, its own could be refused.
    pub(super) async fn record_charged(
        &mut self,
        run: &RunId,
        fact: Fact,
        settled: JoinHandle<()>,
    ) -> Result<(), TicketError> {
        let joined = self.join_entries(run, vec![fact], MOST_TOGETHER)?;
        let (stored, _) = tokio::join!(self.store_entries(run, joined), settled);
        stored
    }

    /// Applies facts to the state and returns their entries, see [`StepEntries::join`].
    ///
    /// The state is ahead of the journal until the entries are stored. An error ends the session, and the state
    /// with it.
    fn join_entries(
        &mut self,
        run: &RunId,
        facts: Vec<Fact>,
        most: usize,
    ) -> Result<StepEntries, TicketError> {
        self.check()?;
        // Only a loaded run has a last sequence to append after.
        let Some(live) = self.runs.get_mut(run) else {
            return Err(TicketError::Lost);
        };
        let fence = self.fence;
        let build = |position, fact| build_entry(fence, position, fact);
        Ok(StepEntries::join(
            Arc::make_mut(&mut live.state),
            facts,
            most,
            build,
        ))
    }

    /// Appends joined entries to the journal.
    async fn store_entries(&mut self, run: &RunId, joined: StepEntries) -> Result<(), TicketError> {
        let StepEntries { entries, illegal } = joined;
        let Some(last) = self.runs.get(run).map(|live| live.last) else {
            return Err(TicketError::Lost);
        };
        let sequence = self.write(run, last, &entries).await?;
        if let Some(live) = self.runs.get_mut(run) {
            live.last = sequence;
            // After the append: the previous fact's pack is needed until the journal names another.
            self.driver.snapshots.release(&live.state);
        }
        for entry in &entries {
            tracing::debug!(%run, fact = entry.fact.name(), position = entry.position, "fact recorded");
        }
        if let Some(illegal) = illegal {
            return Err(illegal.into());
        }
        if entries.iter().any(|entry| entry.fact.shows_progress()) {
            // A count above one is reset at once: the next takeover must not read the old one.
            let is_kept = std::mem::take(&mut self.row.takeovers) > 1;
            if is_kept {
                self.save().await?;
            }
        }
        Ok(())
    }

    /// Appends entries. They keep their nonces during an outage of NATS, so an entry whose acknowledgement was
    /// lost is not written twice.
    async fn write(&self, run: &RunId, last: u64, entries: &[JournalEntry]) -> Result<u64, TicketError> {
        let journal = self.driver.queue.journal();
        let what = entries.first().map_or("nothing", |entry| entry.fact.name());
        self.outlast(what, || journal.append_all(run, last, entries))
            .await
    }
}

fn build_entry(fence: RunFence, position: u64, fact: Fact) -> JournalEntry {
    JournalEntry {
        position,
        nonce: queue::create_nonce(),
        fence,
        at: bootstrap::read_wall_clock(),
        fact,
    }
}
