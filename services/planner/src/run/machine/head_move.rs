//! Handling of a foreign push to the branch that a run works on.

use domain::{CommitId, Fact, OutboundAction};

use super::transitions::{ApplyResult, require_legal, works_at_start};
use super::{PlannerRunState, RunChecks, RunInput};

impl PlannerRunState {
    /// Returns true if the run works towards a push onto a head other than this.
    ///
    /// A run that has pushed, or whose push is pending, continues: either its commit is beneath this head,
    /// or its push is refused and it restarts then.
    pub(super) fn begins_again_at(&self, head: &CommitId) -> bool {
        let about = self.request().and_then(|request| request.about.pull_request());
        let Some((ours, known)) = about else {
            return false;
        };
        let pushed = self.work().pushed.as_ref();
        let is_untouched = pushed.is_some_and(|(branch, at)| *branch == ours.branch && at == known);
        let is_on_its_way = self.reports.iter().any(|report| {
            report.outcome.is_none() && matches!(report.request, OutboundAction::PushBranch(_))
        });
        known != head && is_untouched && !is_on_its_way && self.stop.is_none() && self.closing().is_none()
    }

    /// Restarts the run as if the job were requested at this head. Spending, comments and reports stay.
    pub(super) fn begin_again(&mut self, head: &CommitId) -> ApplyResult {
        require_legal(self.begins_again_at(head), "the work needs no new beginning")?;
        if let RunInput::Request(request) = &mut self.input {
            request.about.move_to(head);
        }
        self.moves += 1;
        // The workspace is of the old head; the session closes it after this fact.
        self.works = works_at_start(&self.input);
        self.dialogs.clear();
        self.outputs.clear();
        self.returns.clear();
        self.checks = RunChecks::default();
        self.own.clear();
        (self.code, self.best, self.went_back) = (None, None, false);
        (self.approved, self.decision, self.retry, self.refused) = (None, None, None, None);
        for heard in &mut self.news {
            // The conversations are gone, so the first turn of the next one shows all news.
            heard.after_turns = 0;
        }
        for report in &mut self.reports {
            // A decision about the obsolete change must not count.
            report.is_void |= report.request.asks_about().is_some();
        }
        Ok(())
    }

    /// Returns the fact that the branch is at this head, if the run has to restart for it.
    pub(crate) fn moved_to(&self, head: &CommitId) -> Option<Fact> {
        let fact = Fact::HeadMoved {
            head: head.clone(),
            by: None,
        };
        self.accepts(&fact).then_some(fact)
    }
}
