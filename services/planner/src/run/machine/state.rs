//! A run as its facts tell it.

use std::collections::BTreeMap;

use domain::{
    CallId, Class, CodeSeed, CommitId, Decision, Fact, Forecast, Job, JobRequest, News, Phase, PhaseOutput,
    ReportId, ReportOutcome, ReportRequest, RepositoryName, Return, RunFence, RunId, RunLimits, StopReason,
    TicketLimits, Timestamp, ToolResult, WaitsFor, WorkspaceInfo, report, report::Begun,
};

use super::best::Best;
use super::budget::Spending;
use super::work::{UNTOUCHED, Work};
use super::{Call, CallResult, CallState, Checks, Dialog, DialogSpec, Input, Retry, Turn};

/// Comments by people without rights that one run takes in; the others stay on the ticket.
pub(crate) const MAX_STRANGER_COMMENTS: usize = 20;

/// A run, folded from its journal.
#[derive(Clone, Debug)]
pub(crate) struct RunState {
    pub(crate) run: RunId,
    pub(crate) input: Input,
    /// Who asked for the work, or for it to go on.
    pub(crate) begun: Begun,
    /// A code that nobody outside the run knows: it marks the tags around text by others.
    pub(crate) nonce: String,
    /// The position of the next entry.
    pub(crate) position: u64,
    /// The fence of the last entry.
    pub(crate) fence: RunFence,
    /// When the last entry was written.
    pub(crate) last_at: Timestamp,
    /// What the run has in each repository that it has touched.
    pub(crate) works: BTreeMap<RepositoryName, Work>,
    /// The conversations with the model; the last one is under way.
    pub(crate) dialogs: Vec<Dialog>,
    /// What phases brought, in order; none is void.
    pub(crate) outputs: Vec<PhaseOutput>,
    /// The position of the last output.
    pub(crate) settled: u64,
    pub(crate) returns: Vec<Returned>,
    /// How often somebody pushed to the branch while the run worked towards a push of its own.
    pub(crate) moves: u32,
    /// Code that the ticket may be about, once it was looked up, and what else there is to say of it.
    pub(crate) code: Option<(Vec<CodeSeed>, String)>,
    /// How often code was looked up.
    pub(crate) lookups: u32,
    /// What such work took before, once that was looked up.
    pub(crate) forecast: Option<Option<Forecast>>,
    /// The class that the ticket turned out to have.
    pub(crate) raised: Option<Class>,
    pub(crate) checks: Checks,
    /// The state that was proven best since people last asked for something else.
    pub(crate) best: Option<Best>,
    /// Whether the work ended worse than that.
    pub(crate) went_back: bool,
    /// Tool calls of the planner's own since the last output.
    pub(crate) own: Vec<Call>,
    pub(crate) reports: Vec<ReportState>,
    /// Reports that may not have reached the reporter's log yet; sending one twice is harmless.
    pub(crate) unsent: Vec<ReportId>,
    /// The commit that a person approved last; no other may be pushed where approval is asked for.
    pub(crate) approved: Option<CommitId>,
    pub(crate) decision: Option<(Decision, String)>,
    pub(crate) stop: Option<String>,
    /// Retries since the last success or reset.
    pub(crate) retries: u32,
    /// The wait that is under way.
    pub(crate) retry: Option<Retry>,
    pub(crate) parked: Option<WaitsFor>,
    /// What the run may spend, once that is set.
    pub(crate) limits: Option<RunLimits>,
    /// The same of its ticket, where that has limits.
    pub(crate) ticket_limits: Option<TicketLimits>,
    /// Why the last call of the model was not made.
    pub(super) refused: Option<StopReason>,
    pub(crate) spending: Spending,
    /// The longest prompt that each model took before it refused a longer one, in tokens.
    pub(super) learned: BTreeMap<String, u64>,
    /// What was said about the ticket since the run began, in order.
    pub(crate) news: Vec<Heard>,
    pub(crate) finished: Option<StopReason>,
}

/// News that a run has heard of.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Stream sequence of the trigger that told of it.
    pub(crate) sequence: u64,
    /// How many turns the run had begun before: the model reads it in the next one.
    pub(crate) after_turns: usize,
    pub(crate) news: News,
}

impl Heard {
    /// True when its author may instruct.
    pub(crate) fn may_instruct(&self) -> bool {
        let News::Comment { comment, .. } = &self.news;
        comment.may_instruct
    }
}

/// One report of the run.
#[derive(Clone, Debug)]
pub(crate) struct ReportState {
    pub(crate) id: ReportId,
    pub(crate) request: ReportRequest,
    pub(crate) at: Timestamp,
    pub(crate) outcome: Option<ReportOutcome>,
    /// It failed, and a retry asks for it anew.
    pub(crate) is_void: bool,
}

/// A way back to the work.
#[derive(Clone, Debug)]
pub(crate) struct Returned {
    /// How many turns the run had begun before.
    pub(crate) after_turns: usize,
    pub(crate) why: Return,
}

impl RunState {
    /// The id of what is requested next.
    pub(crate) fn next_id(&self) -> CallId {
        self.run.call(self.position)
    }

    /// The kind of work.
    pub(crate) fn job(&self) -> Job {
        match &self.input {
            Input::Request(request) => request.job,
            Input::Notice(job, _) => *job,
        }
    }

    /// The request that the run answers.
    pub(crate) fn request(&self) -> Option<&JobRequest> {
        match &self.input {
            Input::Request(request) => Some(request),
            Input::Notice(..) => None,
        }
    }

    /// What the run has in its own repository.
    pub(crate) fn work(&self) -> &Work {
        let own = self.request().map(|request| &request.repository);
        own.and_then(|own| self.works.get(own)).unwrap_or(&UNTOUCHED)
    }

    /// The same of a repository, to change it; the run's own when none is named.
    pub(super) fn work_in(&mut self, named: Option<&RepositoryName>) -> Result<&mut Work, &'static str> {
        let own = self.request().map(|request| &request.repository);
        let repository = named.or(own).cloned().ok_or("the run has no repository")?;
        Ok(self.works.entry(repository).or_default())
    }

    /// The open workspace in the run's own repository.
    pub(crate) fn open_workspace(&self) -> Option<&WorkspaceInfo> {
        self.work().open_workspace()
    }

    /// Every open workspace.
    pub(crate) fn open_workspaces(&self) -> impl Iterator<Item = (&RepositoryName, &WorkspaceInfo)> {
        self.works
            .iter()
            .filter_map(|(repository, work)| Some((repository, work.open_workspace()?)))
    }

    /// One report.
    pub(crate) fn report(&self, id: &ReportId) -> Option<&ReportState> {
        self.reports.iter().find(|report| report.id == *id)
    }

    /// Why the run is about to end, once the ticket is being told.
    pub(crate) fn closing(&self) -> Option<&StopReason> {
        self.reports.iter().find_map(|report| match &report.request {
            ReportRequest::RunStopped(report::RunStopped { reason, .. }) => Some(reason),
            _ => None,
        })
    }

    /// The conversation under way.
    pub(crate) fn dialog(&self) -> Option<&Dialog> {
        self.dialogs.last()
    }

    /// The last turn of the conversation under way.
    pub(crate) fn last_turn(&self) -> Option<&Turn> {
        self.dialog()?.turns.last()
    }

    pub(super) fn last_turn_mut(&mut self) -> Option<&mut Turn> {
        self.dialogs.last_mut()?.turns.last_mut()
    }

    /// True when a model has answered in any conversation.
    pub(crate) fn has_reply(&self) -> bool {
        let mut turns = self.dialogs.iter().flat_map(|dialog| &dialog.turns);
        turns.any(|turn| turn.reply.is_some())
    }

    /// How many turns were begun, in all conversations.
    pub(crate) fn turns(&self) -> usize {
        self.dialogs.iter().map(|dialog| dialog.turns.len()).sum()
    }

    /// The first call without a result, of the last turn or of the planner's own.
    pub(crate) fn open_call(&self) -> Option<&Call> {
        let asked = self.last_turn().into_iter().flat_map(|turn| &turn.calls);
        asked.chain(&self.own).find(|call| call.is_open())
    }

    /// The same, to change it.
    pub(crate) fn open_call_mut(&mut self) -> Option<&mut Call> {
        let turn = self.dialogs.last_mut().and_then(|dialog| dialog.turns.last_mut());
        let asked = turn.into_iter().flat_map(|turn| &mut turn.calls);
        asked.chain(&mut self.own).find(|call| call.is_open())
    }

    /// A call of the planner's own since the last output.
    pub(crate) fn own(&self, name: &str) -> Option<&Call> {
        self.own.iter().find(|call| call.call.name == name)
    }

    /// What a call of the planner's own brought since the last output.
    pub(crate) fn own_result(&self, name: &str) -> Option<&ToolResult> {
        match &self.own(name)?.state {
            CallState::Finished {
                result: CallResult::Ran(result),
                ..
            } => Some(result),
            CallState::Finished { .. } | CallState::Waiting | CallState::Running { .. } => None,
        }
    }

    /// The call without a result, when it is one of the planner's own.
    pub(crate) fn open_own_call(&self) -> Option<&Call> {
        let open = self.open_call()?;
        self.own.iter().find(|own| own.call.id == open.call.id)
    }

    /// Whether the run came back to a conversation after its last turn: what that turn ended with is void.
    pub(crate) fn came_back_to(&self, phase: Phase) -> bool {
        let last = self.returns.last();
        last.is_some_and(|returned| returned.why.phase() == phase && returned.after_turns >= self.turns())
    }

    /// Whether somebody who may instruct has said something since so many turns were begun.
    pub(crate) fn has_answer_since(&self, turns: usize) -> bool {
        self.news
            .iter()
            .any(|heard| heard.after_turns >= turns && heard.may_instruct())
    }

    /// Whether the work has begun.
    pub(crate) fn is_at_work(&self) -> bool {
        self.dialogs.iter().any(|dialog| dialog.phase == Phase::Work)
    }

    pub(super) fn known(&self, dialog: &DialogSpec) -> Option<&Dialog> {
        let is_it = |known: &&Dialog| (known.phase, known.round) == (dialog.phase, dialog.round(self));
        self.dialogs.iter().find(is_it)
    }

    /// The turns of a phase's conversation, as far as it has come.
    pub(crate) fn turns_of(&self, dialog: &DialogSpec) -> &[Turn] {
        self.known(dialog).map_or(&[], |known| &known.turns)
    }

    /// The last report of a kind that counts.
    pub(crate) fn last_report(&self, is_it: impl Fn(&ReportRequest) -> bool) -> Option<&ReportState> {
        let mut latest = self.reports.iter().rev();
        latest.find(|report| !report.is_void && is_it(&report.request))
    }

    /// Notes that a report reached the reporter's log.
    pub(crate) fn sent(&mut self, id: &ReportId) {
        self.unsent.retain(|unsent| unsent != id);
    }

    /// True when a fact from outside still has something to say: a repeated one has not.
    pub(crate) fn accepts(&self, fact: &Fact) -> bool {
        if self.finished.is_some() {
            return false;
        }
        match fact {
            Fact::ReportSettled { id, .. } => self.report(id).is_some_and(|report| report.outcome.is_none()),
            Fact::StopRequested { .. } => {
                self.stop.is_none() && self.closing().is_none() && matches!(self.input, Input::Request(_))
            }
            Fact::Retried { .. } => self.retry.is_some(),
            Fact::Decided { decision, .. } => self.asks_about() == Some(&decision.head),
            Fact::RunFinished { .. } => true,
            Fact::HeadMoved { head, .. } => self.begins_again_at(head),
            Fact::NewsArrived { sequence, news, .. } => {
                let News::Comment { comment, .. } = news;
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

    /// The branch that the run works on, once that is known.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.work().branch.as_deref()
    }

    /// True when the news of this trigger are new, and the run can read any.
    pub(super) fn is_first_report_of(&self, sequence: u64) -> bool {
        self.request().is_some() && self.news.iter().all(|heard| heard.sequence != sequence)
    }

    /// True when the run takes in no more comments by people without rights.
    pub(crate) fn is_full_of_strangers(&self) -> bool {
        self.news.iter().filter(|heard| !heard.may_instruct()).count() >= MAX_STRANGER_COMMENTS
    }

    /// The news that the model is shown, in order. A journal from before the limit may hold more of them.
    pub(super) fn shown_news(&self) -> impl Iterator<Item = &Heard> {
        let mut strangers = 0;
        self.news.iter().filter(move |heard| {
            strangers += usize::from(!heard.may_instruct());
            heard.may_instruct() || strangers <= MAX_STRANGER_COMMENTS
        })
    }

    /// True when somebody who may instruct said something that no turn has shown the model yet. What others say is shown with
    /// the next turn, and is no reason for one.
    pub(crate) fn has_unread_news(&self) -> bool {
        self.has_answer_since(self.turns())
    }

    /// What a person decided on a commit or plan.
    pub(crate) fn decision_about(&self, head: &CommitId) -> Option<&(Decision, String)> {
        self.decision
            .as_ref()
            .filter(|(decision, _)| decision.head == *head)
    }

    /// The commit or plan that a person has been asked about and has not decided on.
    pub(crate) fn asks_about(&self) -> Option<&CommitId> {
        let asked = self.last_report(|request| request.asks_about().is_some())?;
        let head = asked.request.asks_about()?;
        let is_open = self.decision.is_none() && self.approved.as_ref() != Some(head);
        is_open.then_some(head)
    }
}
