//! Folds new triggers into the row and into the journals of the runs that they concern.

use std::sync::Arc;

use domain::{Fact, Row, RunId};

use super::fold::{Step, fold};
use super::session::Session;
use super::steps::Steps;
use crate::driver::Trouble;

impl Session<'_> {
    /// Folds new triggers into row and journals; returns true if there were any.
    pub(super) async fn fold(&mut self, under_way: &mut Steps) -> Result<bool, Trouble> {
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
        let now = bootstrap::now();
        let (row, steps) = fold(self.row.clone(), &self.ticket, &triggers, self.fence, now);
        // Steps before the row: a crash between both repeats the fold, whose facts the journals already
        // have.
        for step in steps {
            self.follow(step, under_way).await?;
        }
        // The steps may reset `takeovers` in the session's row, which the folded row does not know.
        self.row = Row {
            takeovers: self.row.takeovers,
            cursor: last,
            ..row
        };
        self.save().await?;
        Ok(true)
    }

    async fn follow(&mut self, step: Step, under_way: &mut Steps) -> Result<(), Trouble> {
        match step {
            Step::Open { run, trigger } => {
                if !self.load(&run).await? {
                    self.start(run, trigger).await?;
                }
                Ok(())
            }
            Step::Tell { run, fact } => self.tell(&run, *fact, under_way).await,
            Step::Notice(report) => {
                self.check()?;
                let reports = self.driver.queue.reports();
                self.outlast("a notice", || reports.append(&report)).await?;
                Ok(())
            }
        }
    }

    async fn tell(&mut self, run: &RunId, fact: Fact, under_way: &mut Steps) -> Result<(), Trouble> {
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
        if let Some(live) = self.runs.get(run).filter(|live| live.state.finished.is_some()) {
            self.driver.close(&live.state, self.fence).await;
        }
        Ok(())
    }
}
