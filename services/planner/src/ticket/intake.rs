//! Folds new triggers into the row and into the journals of the runs that they concern.

use std::sync::Arc;

use domain::{Fact, RunId, TicketRow};

use super::fold::{FoldStep, fold_triggers};
use super::session::TicketSession;
use super::steps::RunningSteps;
use crate::driver::TicketError;

impl TicketSession<'_> {
    /// Folds new triggers into row and journals; returns true if there were any.
    pub(super) async fn fold(&mut self, under_way: &mut RunningSteps) -> Result<bool, TicketError> {
        // Before the read: a trigger during the read counts as new.
        self.stale = false;
        let log = self.driver.queue.triggers();
        let read = || log.read_each_after(&self.ticket, self.row.cursor);
        let triggers = self.outlast("the ticket's triggers", read).await?;
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
        self.save().await?;
        Ok(true)
    }

    async fn follow(&mut self, step: FoldStep, under_way: &mut RunningSteps) -> Result<(), TicketError> {
        match step {
            FoldStep::Open { run, trigger } => {
                if !self.load(&run).await? {
                    self.start(run, trigger).await?;
                }
                Ok(())
            }
            FoldStep::Tell { run, fact } => self.tell(&run, *fact, under_way).await,
            FoldStep::Notice(report) => {
                self.check()?;
                let reports = self.driver.queue.reports();
                self.outlast("a notice", || reports.append(&report)).await?;
                Ok(())
            }
        }
    }

    async fn tell(
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
            under_way.cut(run).await;
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
}
