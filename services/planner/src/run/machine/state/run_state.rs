//! Sum of the parts of a run's state, and its restart after a foreign push to the branch.

use domain::{CallId, CommitId, Fact, Job, JobRequest, OutboundId, RunFence, RunId, TicketNews, Timestamp};

use super::super::RunInput;
use super::budget::BudgetState;
use super::conversation::ConversationState;
use super::delivery::{DeliveryState, GateState};
use super::dialog::{OwnCallState, TurnCall};
use super::lifecycle::LifecycleState;
use super::mcp::McpState;
use super::outputs::OutputState;
use super::source::SourceState;
use super::verification::VerificationState;
use super::{ApplyResult, require_legal};

/// State of a run, folded from its journal.
#[derive(Clone, Debug)]
pub(crate) struct PlannerRunState {
    pub(crate) run: RunId,
    pub(crate) input: RunInput,
    pub(crate) journal: JournalEnd,
    pub(super) source: SourceState,
    pub(super) conversation: ConversationState,
    pub(super) own_calls: OwnCallState,
    pub(super) mcp: McpState,
    pub(super) outputs: OutputState,
    pub(super) verification: VerificationState,
    pub(super) gate: GateState,
    pub(super) delivery: DeliveryState,
    pub(super) budget: BudgetState,
    pub(super) lifecycle: LifecycleState,
}

/// End of a run's journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalEnd {
    /// Position of the next entry.
    pub(crate) position: u64,
    /// Fence of the last entry.
    pub(crate) fence: RunFence,
    /// Time of the last entry.
    pub(crate) last_at: Timestamp,
}

impl PlannerRunState {
    /// Returns the id of the next request.
    pub(crate) fn next_id(&self) -> CallId {
        // From run and position, so a repeated request has the same id and its effect happens once.
        self.run.call(self.journal.position)
    }

    /// Returns the job of the run.
    pub(crate) fn job(&self) -> Job {
        match &self.input {
            RunInput::Request(request) => request.job,
            RunInput::Notice(job, _) => *job,
        }
    }

    /// Returns true if the run implements a ticket: it opens the pull request that later jobs continue.
    pub(crate) fn implements_ticket(&self) -> bool {
        self.job() == Job::Implement
    }

    /// Returns the request of the run; `None` for a notice.
    pub(crate) fn request(&self) -> Option<&JobRequest> {
        match &self.input {
            RunInput::Request(request) => Some(request),
            RunInput::Notice(..) => None,
        }
    }

    /// Returns the work in repositories, and the code that may match the ticket.
    pub(crate) const fn source(&self) -> &SourceState {
        &self.source
    }

    /// Returns the conversations with the model, and the comments that they read.
    pub(crate) const fn conversation(&self) -> &ConversationState {
        &self.conversation
    }

    /// Returns the planner's own tool calls since the last output.
    pub(crate) const fn own_calls(&self) -> &OwnCallState {
        &self.own_calls
    }

    /// Returns the MCP servers and their tools.
    pub(crate) const fn mcp(&self) -> &McpState {
        &self.mcp
    }

    /// Returns the outputs of phases.
    pub(crate) const fn outputs(&self) -> &OutputState {
        &self.outputs
    }

    /// Returns the checks of the change, and its best verified state.
    pub(crate) const fn verification(&self) -> &VerificationState {
        &self.verification
    }

    /// Returns the decisions of people.
    pub(crate) const fn gate(&self) -> &GateState {
        &self.gate
    }

    /// Returns the reports.
    pub(crate) const fn delivery(&self) -> &DeliveryState {
        &self.delivery
    }

    /// Returns the limits and the spending.
    pub(crate) const fn budget(&self) -> &BudgetState {
        &self.budget
    }

    /// Returns the beginning, the waits and the end.
    pub(crate) const fn lifecycle(&self) -> &LifecycleState {
        &self.lifecycle
    }

    /// Returns the first call without a result, of the last turn or of the planner.
    pub(crate) fn open_call(&self) -> Option<&TurnCall> {
        self.conversation.open_call().or_else(|| self.own_calls.open())
    }

    /// Returns the planner's open call, unless a call of the conversation comes first.
    pub(crate) fn open_own_call(&self) -> Option<&TurnCall> {
        // A restored workspace makes calls of both wait again, and only the first open one may be requested.
        match self.conversation.open_call() {
            Some(_) => None,
            None => self.own_calls.open(),
        }
    }

    /// Notes that a report is in the reporter's log.
    pub(crate) fn sent(&mut self, id: &OutboundId) {
        self.delivery.sent(id);
    }

    /// Returns true if a fact from outside is new and relevant; a repeated one is not.
    pub(crate) fn accepts(&self, fact: &Fact) -> bool {
        if self.lifecycle.finished().is_some() {
            return false;
        }
        match fact {
            Fact::ReportSettled { id, .. } => {
                let report = self.delivery.report(id);
                report.is_some_and(|report| report.outcome.is_none())
            }
            Fact::StopRequested { .. } => {
                let is_ending =
                    self.lifecycle.stop_requester().is_some() || self.delivery.closing().is_some();
                // A notice cannot be stopped: it is one report of an event that has happened.
                !is_ending && self.request().is_some()
            }
            Fact::Retried { trigger, .. } => {
                self.lifecycle.retry().is_some() && self.lifecycle.is_new_trigger(*trigger)
            }
            Fact::Decided { decision, .. } => self.gate.asks_about(&self.delivery) == Some(&decision.head),
            Fact::RunFinished { .. } => true,
            // The result is reported once, so later work would have none. A journal of an earlier release may
            // restart after its result, so such a fact stays legal.
            Fact::HeadMoved { head, trigger, .. } => {
                self.lifecycle.is_new_trigger(*trigger)
                    && self.restarts_at(head)
                    && !self.delivery.has_result()
            }
            Fact::NewsArrived { sequence, news, .. } => {
                let TicketNews::Comment { comment, .. } = news;
                let has_room = comment.may_instruct || !self.conversation.news().is_full_of_strangers();
                self.is_first_report_of(*sequence) && has_room
            }
            Fact::RunStarted { .. }
            | Fact::TakenOver { .. }
            | Fact::WorkspaceRequested { .. }
            | Fact::WorkspaceOpened { .. }
            | Fact::WorkspaceFailed { .. }
            | Fact::WorkspaceRestored { .. }
            | Fact::LimitsSet { .. }
            | Fact::ModelRequested { .. }
            | Fact::ModelReplied { .. }
            | Fact::ModelFailed { .. }
            | Fact::BudgetRefused { .. }
            | Fact::ToolRequested { .. }
            | Fact::ToolFinished { .. }
            | Fact::WentBack { .. }
            | Fact::McpToolsListed { .. }
            | Fact::CodeFound { .. }
            | Fact::EffortForecast { .. }
            | Fact::ChecksFound { .. }
            | Fact::CheckRequested { .. }
            | Fact::CheckRan { .. }
            | Fact::ChangeInspected { .. }
            | Fact::PhaseFinished { .. }
            | Fact::ContextCleared { .. }
            | Fact::SummaryRequested { .. }
            | Fact::Summarized { .. }
            | Fact::SummaryFailed { .. }
            | Fact::ClassRaised { .. }
            | Fact::Returned { .. }
            | Fact::SnapshotTaken { .. }
            | Fact::SnapshotFailed { .. }
            | Fact::ReportRequested { .. }
            | Fact::RetryScheduled { .. }
            | Fact::Hinted { .. }
            | Fact::Parked { .. } => false,
        }
    }

    /// Returns true if the news of this trigger is new and the run can read news.
    pub(super) fn is_first_report_of(&self, sequence: u64) -> bool {
        self.request().is_some() && !self.conversation.news().is_known(sequence)
    }

    /// Returns true if the run works towards a push onto a head other than this.
    ///
    /// A run that has pushed, or whose push is pending, continues: either its commit is beneath this head,
    /// or its push is refused and it restarts then.
    fn restarts_at(&self, head: &CommitId) -> bool {
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
    pub(super) fn restart(&mut self, head: &CommitId) -> ApplyResult {
        require_legal(self.restarts_at(head), "the work needs no restart")?;
        // Without `..`, so that a new part cannot be forgotten.
        let Self {
            run: _,
            input,
            journal: _,
            source,
            conversation,
            own_calls,
            mcp,
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
        mcp.reset();
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
            trigger: None,
        };
        self.accepts(&fact).then_some(fact)
    }
}
