//! Reports: requests to the reporter, and what became of them.

use serde::{Deserialize, Serialize};

use crate::{
    BranchRef, CommitId, Description, FailedCheck, Forecast, Job, ObjectRef, Plan, PullRequestRef, Question,
    RecordKind, ReportFence, ReportId, RepositoryName, RunFence, RunId, ScopeOf, SkipReason, StopReason,
    Stored, TicketKey, Timestamp,
};

/// A request to the reporter. Its effects are performed once, however often it is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its identity; the semantic key in the log.
    pub id: ReportId,
    /// The ticket that hears of it.
    pub ticket: TicketKey,
    /// The run that asked; absent for notices.
    pub run: Option<RunId>,
    /// The asker's fence.
    pub fence: RunFence,
    /// When it was asked for.
    pub at: Timestamp,
    /// What to do.
    pub request: ReportRequest,
}

impl Stored for Report {
    const KIND: RecordKind = RecordKind::Report;
}

impl Report {
    /// A report that no run asked for and none hears of.
    pub fn notice(
        id: ReportId,
        ticket: TicketKey,
        fence: RunFence,
        at: Timestamp,
        request: ReportRequest,
    ) -> Self {
        Self {
            id,
            ticket,
            run: None,
            fence,
            at,
            request,
        }
    }
}

/// How far a ticket's reports are settled; the reporter writes it, the sweeper compares it with the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportCursor {
    /// Stream sequence of the last settled report.
    pub sequence: u64,
    /// The fence of who moved it.
    pub fence: ReportFence,
    /// How often the next report was tried in vain.
    #[serde(default)]
    pub tries: u32,
    /// When the first of these tries was.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

impl Stored for ReportCursor {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// What the reporter is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReportRequest {
    /// Work starts: in-progress status, status comment.
    WorkStarted {
        /// The kind of work.
        job: Job,
        /// Where the change goes.
        repository: RepositoryName,
    },
    /// Work of this kind was done before: say what to expect.
    EffortForecast {
        /// Where the change goes.
        repository: RepositoryName,
        /// What such work took.
        forecast: Forecast,
    },
    /// Import the pack, check it, push the branch.
    PushBranch(PushBranch),
    /// Open the draft pull request, or adopt the open one of the same branch; link it on the ticket.
    OpenPullRequest {
        /// Where.
        repository: RepositoryName,
        /// Head branch, pushed before.
        branch: String,
        /// The branch it should be merged into.
        base_branch: String,
        /// At most 256 characters.
        title: String,
        /// Markdown by the model, at most 60,000 characters; the reporter neutralises mentions and keywords. Empty where
        /// there is a description.
        #[serde(default)]
        body: String,
        /// What it says, for the reporter to put into words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Box<Description>>,
    },
    /// CI is green: mark the pull request ready, tell the ticket, hand over.
    ChecksPassed {
        /// The pull request.
        pull_request: PullRequestRef,
        /// The commit that was checked.
        head: CommitId,
    },
    /// No check reports: mark the pull request ready unless one is configured to, tell the ticket.
    ChecksAbsent {
        /// The pull request.
        pull_request: PullRequestRef,
        /// The commit on which nothing reported.
        head: CommitId,
    },
    /// CI is red: tell the ticket, keep the draft.
    ChecksFailed {
        /// The pull request.
        pull_request: PullRequestRef,
        /// The commit that was checked.
        head: CommitId,
        /// What failed.
        failed: Vec<FailedCheck>,
    },
    /// A person merged: move the ticket to done, say so.
    Merged {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Who merged.
        by: String,
    },
    /// A person closed the pull request unmerged: say so.
    Closed {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Who closed.
        by: String,
    },
    /// A run waits for a person's decision about this push: import and check it, show what it changes, say how to decide.
    DecisionNeeded(Proposal),
    /// A run waits for a person's decision about its plan: show it, say how to decide.
    PlanProposed {
        /// The repository of the change.
        repository: RepositoryName,
        /// Stands for the plan where a decision names a commit.
        id: CommitId,
        /// The plan.
        plan: Box<Plan>,
    },
    /// The model needs an answer: ask on the ticket.
    QuestionAsked {
        /// One to three.
        questions: Vec<Question>,
    },
    /// A run ended without reaching its goal: say why and what to do.
    RunStopped {
        /// The kind of work.
        job: Job,
        /// Why.
        reason: StopReason,
        /// What exists and is kept as a draft.
        pull_request: Option<PullRequestRef>,
        /// What was pushed although no pull request is open for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<BranchRef>,
    },
    /// A run failed for a reason that may pass and is tried again later: say when.
    RetryScheduled {
        /// The kind of work.
        job: Job,
        /// What failed.
        reason: StopReason,
        /// Which retry, from 1.
        attempt: u32,
        /// How many there are at most.
        most: u32,
        /// When.
        due: Timestamp,
    },
    /// The ticket's work brought planners down again and again and is set aside: say so, and how to retry.
    Quarantined {
        /// In words, without secrets.
        reason: String,
    },
    /// A record about the ticket could not be read and was set aside: say so; everything else goes on.
    Unreadable {
        /// Which: a trigger or a report.
        what: RecordKind,
    },
    /// Put labels on the ticket; those that are there already stay.
    AddLabels {
        /// Each one allowed by the repository's rules.
        labels: Vec<String>,
    },
    /// Nothing is done: say why.
    Skipped(SkipReason),
}

impl ReportRequest {
    /// The commit or plan that a person is asked to decide on.
    pub const fn asks_about(&self) -> Option<&CommitId> {
        match self {
            Self::DecisionNeeded(proposal) => Some(&proposal.push.head),
            Self::PlanProposed { id, .. } => Some(id),
            Self::WorkStarted { .. }
            | Self::EffortForecast { .. }
            | Self::PushBranch(_)
            | Self::OpenPullRequest { .. }
            | Self::ChecksPassed { .. }
            | Self::ChecksAbsent { .. }
            | Self::ChecksFailed { .. }
            | Self::Merged { .. }
            | Self::Closed { .. }
            | Self::QuestionAsked { .. }
            | Self::RunStopped { .. }
            | Self::RetryScheduled { .. }
            | Self::Quarantined { .. }
            | Self::Unreadable { .. }
            | Self::AddLabels { .. }
            | Self::Skipped(_) => None,
        }
    }
}

/// A branch to push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushBranch {
    /// Where.
    pub repository: RepositoryName,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The recorded base that the commits must descend from.
    pub base: CommitId,
    /// The new head.
    pub head: CommitId,
    /// The pack with every object that the base lacks.
    pub pack: ObjectRef,
    /// What the remote branch must point at (`--force-with-lease`); absent: it must not exist.
    pub expected: Option<CommitId>,
    /// Whose change it is, for rules that have modules; absent: they are not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeOf>,
}

/// A push that a person decides about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The push.
    #[serde(flatten)]
    pub push: PushBranch,
    /// What it is, for the reporter to put into words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<Description>>,
}

/// What came back of a report; it returns to the run as a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportSettled {
    /// The report.
    pub report: ReportId,
    /// The run that asked.
    pub run: RunId,
    /// What became of it.
    pub outcome: ReportOutcome,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReportOutcome {
    /// Every effect is done.
    Done(Receipt),
    /// Policy or the outside refuses; the detail tells model and person what to change.
    Refused {
        /// In words, without secrets.
        detail: String,
    },
    /// It failed after every retry.
    Failed {
        /// In words, without secrets.
        detail: String,
    },
}

impl Stored for ReportOutcome {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// What a finished report made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Receipt {
    /// The branch is on the remote.
    Pushed {
        /// The branch.
        branch: String,
        /// Its head there.
        head: CommitId,
    },
    /// The pull request is open.
    PullRequestOpened(PullRequestRef),
    /// A person has been asked about a push.
    DecisionAsked {
        /// The commit that the decision is about.
        head: CommitId,
        /// The whole difference as text in git's format, bounded by the reporter's settings.
        diff: ObjectRef,
    },
    /// People were told; nothing to carry on with.
    Told,
}
