//! Somebody pushes to the branch that a run works on.

use domain::{CommitId, Fact, ReportRequest};

use super::apply::{Applied, begun, legal};
use super::{Checks, Input, RunState};

impl RunState {
    /// Whether the run works towards a push onto another head than this. One that has pushed, or may have, goes on: either its
    /// commit is beneath this head, or its push is refused and it begins again then.
    pub(super) fn begins_again_at(&self, head: &CommitId) -> bool {
        let about = self.request().and_then(|request| request.about.pull_request());
        let Some((ours, known)) = about else {
            return false;
        };
        let pushed = self.work().pushed.as_ref();
        let is_untouched = pushed.is_some_and(|(branch, at)| *branch == ours.branch && at == known);
        let is_on_its_way = self
            .reports
            .iter()
            .any(|report| report.outcome.is_none() && matches!(report.request, ReportRequest::PushBranch(_)));
        known != head && is_untouched && !is_on_its_way && self.stop.is_none() && self.closing().is_none()
    }

    /// As if the job were asked for at this head. What it has spent, and what people said and heard, stays.
    pub(super) fn begin_again(&mut self, head: &CommitId) -> Applied {
        legal(self.begins_again_at(head), "the work needs no new beginning")?;
        if let Input::Request(request) = &mut self.input {
            request.about.move_to(head);
        }
        self.moves += 1;
        self.works = begun(&self.input);
        self.dialogs.clear();
        self.outputs.clear();
        self.returns.clear();
        self.checks = Checks::default();
        self.own.clear();
        (self.code, self.best, self.went_back) = (None, None, false);
        (self.approved, self.decision, self.retry, self.refused) = (None, None, None, None);
        for heard in &mut self.news {
            heard.after_turns = 0;
        }
        for report in &mut self.reports {
            // Nobody decides about a change that is gone.
            report.is_void |= report.request.asks_about().is_some();
        }
        Ok(())
    }

    /// The fact that the branch is at this head, where the run has to begin again for it.
    pub(crate) fn moved_to(&self, head: &CommitId) -> Option<Fact> {
        let fact = Fact::HeadMoved {
            head: head.clone(),
            by: None,
        };
        self.accepts(&fact).then_some(fact)
    }
}
