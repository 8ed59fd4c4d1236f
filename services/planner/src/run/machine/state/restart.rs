//! Restart of the work after a foreign push to the branch that a run works on.

use domain::{CommitId, Fact};

use super::super::RunInput;
use super::legality::{ApplyResult, require_legal};
use super::run_state::PlannerRunState;

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
        let pushed = self.source.work().pushed.as_ref();
        let is_untouched = pushed.is_some_and(|(branch, at)| *branch == ours.branch && at == known);
        let is_ending = self.lifecycle.stop_requester().is_some() || self.delivery.closing().is_some();
        known != head && is_untouched && !self.delivery.has_open_push() && !is_ending
    }

    /// Restarts the run as if the job were requested at this head. Each part documents what it keeps.
    pub(super) fn begin_again(&mut self, head: &CommitId) -> ApplyResult {
        require_legal(self.begins_again_at(head), "the work needs no new beginning")?;
        // Without `..`, so that a new part cannot be forgotten.
        let Self {
            run: _,
            input,
            journal: _,
            source,
            conversation,
            own_calls,
            outputs,
            verification,
            gate,
            delivery,
            budget,
            lifecycle,
        } = self;
        if let RunInput::Request(request) = input {
            request.about.move_to(head);
        }
        source.reset(input);
        conversation.reset();
        own_calls.reset();
        outputs.reset();
        verification.reset();
        gate.reset();
        delivery.reset();
        budget.reset();
        lifecycle.reset();
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
