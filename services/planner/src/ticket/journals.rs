//! Journals of one ticket's runs: read at the takeover, appended one fact at a time.

use std::sync::Arc;

use domain::{Fact, Job, JournalEntry, RunId, Trigger};

use super::session::{LoadedRun, TicketSession};
use crate::driver::TicketError;
use crate::run::PlannerRunState;

impl TicketSession<'_> {
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
        self.runs.insert(run.clone(), LoadedRun { state, last });
        // Fences the former planner: its next append fails by the journal's sequence.
        if foreign {
            self.append(run, Fact::TakenOver { fence: self.fence }).await?;
        }
        Ok(true)
    }

    pub(super) async fn start(&mut self, run: RunId, trigger: Box<Trigger>) -> Result<(), TicketError> {
        self.check()?;
        let job = trigger.reason.job().map_or("none", Job::as_str);
        // Sequence 0 expects an empty journal, so two planners cannot both start the run.
        let entry = self.entry(0, Fact::RunStarted { trigger });
        let last = self.write(&run, 0, &entry).await?;
        tracing::info!(%run, job, "run started");
        if let Some(state) = PlannerRunState::fold(&run, [&entry])? {
            let state = Arc::new(state);
            self.runs.insert(run, LoadedRun { state, last });
        }
        Ok(())
    }

    fn entry(&self, position: u64, fact: Fact) -> JournalEntry {
        JournalEntry {
            position,
            nonce: uuid::Uuid::new_v4().to_string(),
            fence: self.fence,
            at: bootstrap::read_wall_clock(),
            fact,
        }
    }

    /// Appends a fact to the journal, then applies it to the state.
    pub(super) async fn append(&mut self, run: &RunId, fact: Fact) -> Result<(), TicketError> {
        self.check()?;
        // Only a loaded run has a last sequence to append after.
        let Some(live) = self.runs.get(run) else {
            return Err(TicketError::Lost);
        };
        let entry = self.entry(live.state.journal.position, fact);
        let sequence = self.write(run, live.last, &entry).await?;
        if let Some(live) = self.runs.get_mut(run) {
            live.last = sequence;
            Arc::make_mut(&mut live.state).apply(&entry)?;
            // After the append: the previous fact's pack is needed until the journal names another.
            self.driver.snapshots.release(&live.state);
        }
        tracing::debug!(%run, fact = entry.fact.name(), position = entry.position, "fact recorded");
        if entry.fact.shows_progress() {
            // A count above one is reset at once: the next takeover must not read the old one.
            let is_kept = std::mem::take(&mut self.row.takeovers) > 1;
            if is_kept {
                self.save().await?;
            }
        }
        Ok(())
    }

    /// Appends an entry. It keeps its nonce during an outage of NATS, so an entry whose acknowledgement was
    /// lost is not written twice.
    async fn write(&self, run: &RunId, last: u64, entry: &JournalEntry) -> Result<u64, TicketError> {
        let journal = self.driver.queue.journal();
        self.outlast(entry.fact.name(), || journal.append(run, last, entry))
            .await
    }
}
