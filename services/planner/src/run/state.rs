//! A run as its facts tell it.

use std::collections::BTreeMap;

use domain::{
    CallId, CommitId, Conclusion, Decision, Fact, Job, JobRequest, News, Reason, Reply, ReportId,
    ReportOutcome, ReportRequest, RepositoryName, RunFence, RunId, StopReason, Timestamp, ToolCall,
    ToolResult, Trigger, WaitsFor, WorkspaceInfo,
};

use super::retry::Retry;
use super::work::{UNTOUCHED, Work};

/// A run, folded from its journal.
#[derive(Clone, Debug)]
pub(crate) struct RunState {
    pub(crate) run: RunId,
    pub(crate) goal: Goal,
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
    pub(crate) turns: Vec<Turn>,
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
    /// What was said about the ticket since the run began, in order.
    pub(crate) news: Vec<Heard>,
    pub(crate) finished: Option<StopReason>,
}

/// What a run is for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// Work with the model in a workspace until a pull request is open.
    Implement(Box<JobRequest>),
    /// Let the model choose labels for the ticket.
    Triage(Box<JobRequest>),
    /// One report, then the end.
    Tell(Job, Box<ReportRequest>),
    /// A kind of work that this release cannot do.
    Unsupported(Job),
}

/// One model call and its tool calls.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) id: CallId,
    pub(crate) reply: Option<Reply>,
    pub(crate) failed: Option<ModelTrouble>,
    pub(crate) calls: Vec<Call>,
    /// What the model has to know besides the results of its calls.
    pub(crate) notice: Option<String>,
}

/// Why a model call failed.
#[derive(Clone, Debug)]
pub(crate) struct ModelTrouble {
    pub(crate) detail: String,
    /// The same call may work later.
    pub(crate) transient: bool,
}

/// One tool call of a reply.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: ToolCall,
    /// In whose workspace it runs; absent: the run's own repository.
    pub(crate) repository: Option<RepositoryName>,
    pub(crate) state: CallState,
    /// The report that does what the call asks for.
    pub(crate) report: Option<ReportId>,
    /// The report that asks a person first.
    pub(crate) gate: Option<ReportId>,
    /// How often its workspace was lost while it ran.
    pub(crate) losses: u32,
}

/// A call is not run again once its workspace was lost this often while it ran.
const MOST_LOSSES: u32 = 2;

impl Call {
    /// Whether it probably costs every workspace that it runs in.
    pub(super) const fn is_deadly(&self) -> bool {
        self.losses >= MOST_LOSSES
    }
}

/// News that a run has heard of.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Stream sequence of the trigger that told of it.
    pub(crate) sequence: u64,
    /// How many turns were begun before: the model reads it in the next one.
    pub(crate) after_turns: usize,
    pub(crate) news: News,
}

/// Where a tool call stands.
#[derive(Clone, Debug)]
pub(crate) enum CallState {
    Waiting,
    Running { id: CallId, at: Timestamp },
    Finished { result: ToolResult, position: u64 },
}

/// One report of the run.
#[derive(Clone, Debug)]
pub(crate) struct ReportState {
    pub(crate) id: ReportId,
    pub(crate) request: ReportRequest,
    pub(crate) at: Timestamp,
    pub(crate) outcome: Option<ReportOutcome>,
}

impl RunState {
    /// The id of what is requested next.
    pub(crate) fn next_id(&self) -> CallId {
        self.run.call(self.position)
    }

    /// The kind of work.
    pub(crate) fn job(&self) -> Job {
        match &self.goal {
            Goal::Implement(request) | Goal::Triage(request) => request.job,
            Goal::Tell(job, _) | Goal::Unsupported(job) => *job,
        }
    }

    /// The request of a run that works with the model.
    pub(crate) fn request(&self) -> Option<&JobRequest> {
        match &self.goal {
            Goal::Implement(request) | Goal::Triage(request) => Some(request),
            Goal::Tell(..) | Goal::Unsupported(_) => None,
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
            ReportRequest::RunStopped { reason, .. } => Some(reason),
            ReportRequest::WorkStarted { .. }
            | ReportRequest::PushBranch(_)
            | ReportRequest::OpenPullRequest { .. }
            | ReportRequest::ChecksPassed { .. }
            | ReportRequest::ChecksAbsent { .. }
            | ReportRequest::ChecksFailed { .. }
            | ReportRequest::Merged { .. }
            | ReportRequest::Closed { .. }
            | ReportRequest::DecisionNeeded(_)
            | ReportRequest::RetryScheduled { .. }
            | ReportRequest::Quarantined { .. }
            | ReportRequest::Unreadable { .. }
            | ReportRequest::AddLabels { .. }
            | ReportRequest::Skipped(_) => None,
        })
    }

    /// The first call of the last turn that has no result.
    pub(crate) fn open_call(&self) -> Option<&Call> {
        self.turns
            .last()?
            .calls
            .iter()
            .find(|call| !matches!(call.state, CallState::Finished { .. }))
    }

    /// The same, to change it.
    pub(crate) fn open_call_mut(&mut self) -> Option<&mut Call> {
        self.turns
            .last_mut()?
            .calls
            .iter_mut()
            .find(|call| !matches!(call.state, CallState::Finished { .. }))
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
                self.stop.is_none() && self.closing().is_none() && !matches!(self.goal, Goal::Tell(..))
            }
            Fact::Retried { .. } => self.retry.is_some(),
            Fact::Decided { decision, .. } => self.asks_about() == Some(&decision.head),
            Fact::RunFinished { .. } => true,
            Fact::NewsArrived { sequence, .. } => {
                self.request().is_some() && self.news.iter().all(|heard| heard.sequence != *sequence)
            }
            Fact::RunStarted { .. }
            | Fact::TakenOver { .. }
            | Fact::WorkspaceRequested { .. }
            | Fact::WorkspaceOpened { .. }
            | Fact::WorkspaceFailed { .. }
            | Fact::WorkspaceRestored { .. }
            | Fact::ModelRequested { .. }
            | Fact::ModelReplied { .. }
            | Fact::ModelFailed { .. }
            | Fact::ToolRequested { .. }
            | Fact::ToolFinished { .. }
            | Fact::SnapshotTaken { .. }
            | Fact::SnapshotFailed { .. }
            | Fact::ReportRequested { .. }
            | Fact::RetryScheduled { .. }
            | Fact::Parked { .. } => false,
        }
    }

    /// The branch that the run works on, once that is known.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.work().branch.as_deref()
    }

    /// True when something was said that no turn has shown the model yet.
    pub(crate) fn has_unread_news(&self) -> bool {
        self.news
            .iter()
            .any(|heard| heard.after_turns >= self.turns.len())
    }

    /// The commit that a person has been asked about and has not decided on.
    pub(crate) fn asks_about(&self) -> Option<&CommitId> {
        let asked = self.open_call()?.gate.as_ref()?;
        match &self.report(asked)?.request {
            ReportRequest::DecisionNeeded(push)
                if self.decision.is_none() && self.approved.as_ref() != Some(&push.head) =>
            {
                Some(&push.head)
            }
            _ => None,
        }
    }
}

impl Goal {
    /// What a trigger opens a run for; `None` when it opens none.
    pub(crate) fn of(trigger: &Trigger) -> Option<Self> {
        let tell = |job, request| Some(Self::Tell(job, Box::new(request)));
        match &trigger.reason {
            Reason::JobRequested(request) if request.job == Job::Implement => {
                Some(Self::Implement(request.clone()))
            }
            Reason::JobRequested(request) if request.job == Job::Triage => {
                Some(Self::Triage(request.clone()))
            }
            Reason::JobRequested(request) => Some(Self::Unsupported(request.job)),
            Reason::ChecksCompleted(checks) => {
                let (pull_request, head) = (checks.pull_request.clone(), checks.head.clone());
                match checks.conclusion {
                    Conclusion::Success => {
                        tell(Job::MarkReady, ReportRequest::ChecksPassed { pull_request, head })
                    }
                    Conclusion::Absent => {
                        tell(Job::MarkReady, ReportRequest::ChecksAbsent { pull_request, head })
                    }
                    Conclusion::Failure => tell(
                        Job::FixCi,
                        ReportRequest::ChecksFailed {
                            pull_request,
                            head,
                            failed: checks.failed.clone(),
                        },
                    ),
                }
            }
            Reason::PullRequestMerged { pull_request, by } => tell(
                Job::Finish,
                ReportRequest::Merged {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                },
            ),
            Reason::PullRequestClosed { pull_request, by } => tell(
                Job::Finish,
                ReportRequest::Closed {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                },
            ),
            Reason::Skipped(_)
            | Reason::StopRequested { .. }
            | Reason::RetryRequested
            | Reason::Decided(_)
            | Reason::ReportSettled(_)
            | Reason::NewsArrived(_) => None,
        }
    }
}
