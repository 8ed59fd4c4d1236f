//! State of a run, folded from its journal.

use std::collections::BTreeMap;

use domain::{
    CallId, CodeSeed, CommitId, EffortEstimate, ExecutorWorkspace, Fact, GateDecision, Job, JobRequest,
    OutboundAction, OutboundId, OutboundOutcome, PhaseOutput, RepositoryName, ReturnReason, RunFence, RunId,
    RunLimits, RunPhase, StopReason, TicketLimits, TicketNews, Timestamp, ToolResult, WaitCondition,
    WorkClass, report, report::WorkOrigin,
};

use super::best_state::BestState;
use super::budget::RunSpending;
use super::work::{RepositoryWork, UNTOUCHED};
use super::{
    CallResult, DialogSpec, DialogTurn, PhaseDialog, RetryWait, RunChecks, RunInput, TurnCall, TurnCallState,
};

/// Comments by authors without rights that one run accepts; the others stay on the ticket.
pub(crate) const MAX_STRANGER_COMMENTS: usize = 20;

/// State of a run, folded from its journal.
#[derive(Clone, Debug)]
pub(crate) struct PlannerRunState {
    pub(crate) run: RunId,
    pub(crate) input: RunInput,
    /// Requester of the work, or of its continuation.
    pub(crate) begun: WorkOrigin,
    /// Secret code of the run; it marks the tags around foreign text.
    pub(crate) nonce: String,
    /// Position of the next entry.
    pub(crate) position: u64,
    /// Fence of the last entry.
    pub(crate) fence: RunFence,
    /// Time of the last entry.
    pub(crate) last_at: Timestamp,
    /// Work of the run in each repository that it touches.
    pub(crate) works: BTreeMap<RepositoryName, RepositoryWork>,
    /// Conversations with the model; the last one is current.
    pub(crate) dialogs: Vec<PhaseDialog>,
    /// Valid outputs of phases, in order.
    pub(crate) outputs: Vec<PhaseOutput>,
    /// Position of the last output.
    pub(crate) settled: u64,
    pub(crate) returns: Vec<ReturnRecord>,
    /// Number of foreign pushes to the branch while the run worked towards its own push.
    pub(crate) moves: u32,
    /// Code that may match the ticket, once it is searched, and the note of the search.
    pub(crate) code: Option<(Vec<CodeSeed>, String)>,
    /// Number of code searches.
    pub(crate) lookups: u32,
    /// Effort of similar work, once it is read. The inner value is `None` without enough history.
    pub(crate) forecast: Option<Option<EffortEstimate>>,
    /// Size class that the ticket turned out to have.
    pub(crate) raised: Option<WorkClass>,
    pub(crate) checks: RunChecks,
    /// Best verified state since users last changed their request.
    pub(crate) best: Option<BestState>,
    /// True if the run delivers the best state because the work ended worse.
    pub(crate) went_back: bool,
    /// Planner's own tool calls since the last output.
    pub(crate) own: Vec<TurnCall>,
    pub(crate) reports: Vec<ReportState>,
    /// Reports that the reporter's log may lack; sending one twice is harmless.
    pub(crate) unsent: Vec<OutboundId>,
    /// Commit that a person approved last. Where approval is required, no other commit may be pushed.
    pub(crate) approved: Option<CommitId>,
    pub(crate) decision: Option<(GateDecision, String)>,
    pub(crate) stop: Option<String>,
    /// Retries since the last success or reset.
    pub(crate) retries: u32,
    /// Current wait for a retry.
    pub(crate) retry: Option<RetryWait>,
    pub(crate) parked: Option<WaitCondition>,
    /// Limits of the run, once they are set.
    pub(crate) limits: Option<RunLimits>,
    /// Limits of the ticket, if it has any.
    pub(crate) ticket_limits: Option<TicketLimits>,
    /// Reason that the last model call was not made.
    pub(super) refused: Option<StopReason>,
    pub(crate) spending: RunSpending,
    /// Longest prompt in tokens that each model accepted before it refused a longer one.
    pub(super) learned: BTreeMap<String, u64>,
    /// Comments since the start of the run, in order.
    pub(crate) news: Vec<ReceivedNews>,
    pub(crate) finished: Option<StopReason>,
}

/// News that the run has received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedNews {
    /// Stream sequence of the news' trigger.
    pub(crate) sequence: u64,
    /// Number of turns before it: the model reads it in the next one.
    pub(crate) after_turns: usize,
    pub(crate) news: TicketNews,
}

impl ReceivedNews {
    /// Returns true if its author may instruct.
    pub(crate) fn may_instruct(&self) -> bool {
        let TicketNews::Comment { comment, .. } = &self.news;
        comment.may_instruct
    }
}

/// Report of the run.
#[derive(Clone, Debug)]
pub(crate) struct ReportState {
    pub(crate) id: OutboundId,
    pub(crate) request: OutboundAction,
    pub(crate) at: Timestamp,
    pub(crate) outcome: Option<OutboundOutcome>,
    /// True for a failed report that a retry requests again.
    pub(crate) is_void: bool,
}

/// Return to the work.
#[derive(Clone, Debug)]
pub(crate) struct ReturnRecord {
    /// Number of turns before it.
    pub(crate) after_turns: usize,
    pub(crate) why: ReturnReason,
}

impl PlannerRunState {
    /// Returns the id of the next request.
    pub(crate) fn next_id(&self) -> CallId {
        // From run and position, so a repeated request has the same id and its effect happens once.
        self.run.call(self.position)
    }

    /// Returns the job of the run.
    pub(crate) fn job(&self) -> Job {
        match &self.input {
            RunInput::Request(request) => request.job,
            RunInput::Notice(job, _) => *job,
        }
    }

    /// Returns the request of the run; `None` for a notice.
    pub(crate) fn request(&self) -> Option<&JobRequest> {
        match &self.input {
            RunInput::Request(request) => Some(request),
            RunInput::Notice(..) => None,
        }
    }

    /// Returns the work in the run's own repository.
    pub(crate) fn work(&self) -> &RepositoryWork {
        let own = self.request().map(|request| &request.repository);
        own.and_then(|own| self.works.get(own)).unwrap_or(&UNTOUCHED)
    }

    /// Returns the work in a repository for changes; without a name, in the run's own.
    pub(super) fn work_in(
        &mut self,
        named: Option<&RepositoryName>,
    ) -> Result<&mut RepositoryWork, &'static str> {
        let own = self.request().map(|request| &request.repository);
        let repository = named.or(own).cloned().ok_or("the run has no repository")?;
        Ok(self.works.entry(repository).or_default())
    }

    /// Returns the open workspace in the run's own repository.
    pub(crate) fn open_workspace(&self) -> Option<&ExecutorWorkspace> {
        self.work().open_workspace()
    }

    /// Returns every open workspace.
    pub(crate) fn open_workspaces(&self) -> impl Iterator<Item = (&RepositoryName, &ExecutorWorkspace)> {
        self.works
            .iter()
            .filter_map(|(repository, work)| Some((repository, work.open_workspace()?)))
    }

    /// Returns the report with this id.
    pub(crate) fn report(&self, id: &OutboundId) -> Option<&ReportState> {
        self.reports.iter().find(|report| report.id == *id)
    }

    /// Returns the reason that the run ends, once its report is requested.
    pub(crate) fn closing(&self) -> Option<&StopReason> {
        self.reports.iter().find_map(|report| match &report.request {
            OutboundAction::RunStopped(report::RunStopped { reason, .. }) => Some(reason),
            _ => None,
        })
    }

    /// Returns the current conversation.
    pub(crate) fn dialog(&self) -> Option<&PhaseDialog> {
        self.dialogs.last()
    }

    /// Returns the last turn of the current conversation.
    pub(crate) fn last_turn(&self) -> Option<&DialogTurn> {
        self.dialog()?.turns.last()
    }

    pub(super) fn last_turn_mut(&mut self) -> Option<&mut DialogTurn> {
        self.dialogs.last_mut()?.turns.last_mut()
    }

    /// Returns true if a model has replied in any conversation.
    pub(crate) fn has_reply(&self) -> bool {
        let mut turns = self.dialogs.iter().flat_map(|dialog| &dialog.turns);
        turns.any(|turn| turn.reply.is_some())
    }

    /// Returns the number of turns in all conversations.
    pub(crate) fn turns(&self) -> usize {
        self.dialogs.iter().map(|dialog| dialog.turns.len()).sum()
    }

    /// Returns the first call without a result, of the last turn or of the planner.
    pub(crate) fn open_call(&self) -> Option<&TurnCall> {
        let asked = self.last_turn().into_iter().flat_map(|turn| &turn.calls);
        asked.chain(&self.own).find(|call| call.is_open())
    }

    /// Returns the same call for changes.
    pub(crate) fn open_call_mut(&mut self) -> Option<&mut TurnCall> {
        let turn = self.dialogs.last_mut().and_then(|dialog| dialog.turns.last_mut());
        let asked = turn.into_iter().flat_map(|turn| &mut turn.calls);
        asked.chain(&mut self.own).find(|call| call.is_open())
    }

    /// Returns the planner's call of this tool since the last output.
    pub(crate) fn own(&self, name: &str) -> Option<&TurnCall> {
        self.own.iter().find(|call| call.call.name == name)
    }

    /// Returns the result of the planner's call of this tool since the last output.
    pub(crate) fn own_result(&self, name: &str) -> Option<&ToolResult> {
        match &self.own(name)?.state {
            TurnCallState::Finished {
                result: CallResult::Ran(result),
                ..
            } => Some(result),
            TurnCallState::Finished { .. } | TurnCallState::Waiting | TurnCallState::Running { .. } => None,
        }
    }

    /// Returns the call without a result, if it is the planner's.
    pub(crate) fn open_own_call(&self) -> Option<&TurnCall> {
        let open = self.open_call()?;
        self.own.iter().find(|own| own.call.id == open.call.id)
    }

    /// Returns true if the run returned to a conversation after its last turn, so the outcome of that turn
    /// no longer applies.
    pub(crate) fn came_back_to(&self, phase: RunPhase) -> bool {
        let last = self.returns.last();
        last.is_some_and(|returned| returned.why.phase() == phase && returned.after_turns >= self.turns())
    }

    /// Returns true if an author who may instruct has commented after this many turns.
    pub(crate) fn has_answer_since(&self, turns: usize) -> bool {
        self.news
            .iter()
            .any(|heard| heard.after_turns >= turns && heard.may_instruct())
    }

    /// Returns true if the work has begun.
    pub(crate) fn is_at_work(&self) -> bool {
        self.dialogs.iter().any(|dialog| dialog.phase == RunPhase::Work)
    }

    pub(super) fn known(&self, dialog: &DialogSpec) -> Option<&PhaseDialog> {
        // Found by phase and round, because a return may start a further conversation of the phase.
        let is_it = |known: &&PhaseDialog| (known.phase, known.round) == (dialog.phase, dialog.round(self));
        self.dialogs.iter().find(is_it)
    }

    /// Returns the turns of a phase's conversation.
    pub(crate) fn turns_of(&self, dialog: &DialogSpec) -> &[DialogTurn] {
        self.known(dialog).map_or(&[], |known| &known.turns)
    }

    /// Returns the last valid report of a kind.
    pub(crate) fn last_report(&self, is_it: impl Fn(&OutboundAction) -> bool) -> Option<&ReportState> {
        let mut latest = self.reports.iter().rev();
        // A void report is requested again, so it must not be found.
        latest.find(|report| !report.is_void && is_it(&report.request))
    }

    /// Notes that a report is in the reporter's log.
    pub(crate) fn sent(&mut self, id: &OutboundId) {
        self.unsent.retain(|unsent| unsent != id);
    }

    /// Returns true if a fact from outside is new and relevant; a repeated one is not.
    pub(crate) fn accepts(&self, fact: &Fact) -> bool {
        if self.finished.is_some() {
            return false;
        }
        match fact {
            Fact::ReportSettled { id, .. } => self.report(id).is_some_and(|report| report.outcome.is_none()),
            Fact::StopRequested { .. } => {
                // A notice cannot be stopped: it is one report of an event that has happened.
                self.stop.is_none() && self.closing().is_none() && matches!(self.input, RunInput::Request(_))
            }
            Fact::Retried { .. } => self.retry.is_some(),
            Fact::Decided { decision, .. } => self.asks_about() == Some(&decision.head),
            Fact::RunFinished { .. } => true,
            Fact::HeadMoved { head, .. } => self.begins_again_at(head),
            Fact::NewsArrived { sequence, news, .. } => {
                let TicketNews::Comment { comment, .. } = news;
                self.is_first_report_of(*sequence) && (comment.may_instruct || !self.is_full_of_strangers())
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

    /// Returns the branch of the run, once it is known.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.work().branch.as_deref()
    }

    /// Returns true if the news of this trigger is new and the run can read news.
    pub(super) fn is_first_report_of(&self, sequence: u64) -> bool {
        self.request().is_some() && self.news.iter().all(|heard| heard.sequence != sequence)
    }

    /// Returns true if the run accepts no more comments by authors without rights.
    pub(crate) fn is_full_of_strangers(&self) -> bool {
        self.news.iter().filter(|heard| !heard.may_instruct()).count() >= MAX_STRANGER_COMMENTS
    }

    /// Returns the news that the model reads, in order. A journal from before the limit may contain more.
    pub(super) fn shown_news(&self) -> impl Iterator<Item = &ReceivedNews> {
        let mut strangers = 0;
        self.news.iter().filter(move |heard| {
            // Counted in order, so that the shown comments stay the same when more arrive.
            strangers += usize::from(!heard.may_instruct());
            heard.may_instruct() || strangers <= MAX_STRANGER_COMMENTS
        })
    }

    /// Returns true if an author who may instruct has commented since the last turn. Other comments wait
    /// for the next turn and cause none.
    pub(crate) fn has_unread_news(&self) -> bool {
        self.has_answer_since(self.turns())
    }

    /// Returns a person's decision about a commit or plan.
    pub(crate) fn decision_about(&self, head: &CommitId) -> Option<&(GateDecision, String)> {
        self.decision
            .as_ref()
            .filter(|(decision, _)| decision.head == *head)
    }

    /// Returns the commit or plan that waits for a person's decision.
    pub(crate) fn asks_about(&self) -> Option<&CommitId> {
        let asked = self.last_report(|request| request.asks_about().is_some())?;
        let head = asked.request.asks_about()?;
        let is_open = self.decision.is_none() && self.approved.as_ref() != Some(head);
        is_open.then_some(head)
    }
}
