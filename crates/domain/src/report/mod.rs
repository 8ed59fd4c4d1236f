//! Reports: requests to the reporter, and what became of them.

mod issues;
mod patience;
mod progress;
mod pull_requests;
mod request;
mod requests;
mod tickets;
mod triage;

pub use issues::{Discussed, OpenIssues};
pub use patience::{RerunChecks, ReviewAwaited};
pub use progress::{Progress, Progressed};
pub use pull_requests::{
    ChecksAbsent, ChecksFailed, ChecksPassed, ChecksRepaired, Closed, Merged, MergedElsewhere,
    OpenPullRequest, PullRequestReviewed, PushedByOthers, Reopened, RepairStrategy, ReviewAddressed,
    WorkDelivered,
};
pub use requests::{Rehearse, ReportRequest};
pub use tickets::{
    Begun, CostTold, EffortForecast, FailedOn, PlanProposed, Quarantined, QuestionAnswered, QuestionAsked,
    React, RetryScheduled, RunStopped, Unreadable, WorkStarted,
};
pub use triage::Triaged;

use serde::{Deserialize, Serialize};

use crate::{
    CommitId, Description, ObjectRef, PullRequestRef, RecordKind, Refusal, ReportFence, ReportId,
    RepositoryName, RunFence, RunId, ScopeOf, Stored, TicketKey, Timestamp,
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
    /// How far the run is; absent for notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
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
            progress: None,
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
    /// Number of reporters that crashed at the next report before the one that has the ticket in hand; absent: it was given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<u32>,
}

impl Stored for ReportCursor {
    const KIND: RecordKind = RecordKind::Ledger;
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
    /// Policy or the outside refuses.
    Refused(Refusal),
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
    /// Nothing was done: this would be.
    Rehearsed {
        /// In order.
        would: Vec<Rehearsed>,
    },
}

/// What would be done for one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsed {
    /// The request, on one line.
    pub request: String,
    /// The names of its effects, in order.
    pub effects: Vec<String>,
    /// What people would read on the ticket or pull request, Markdown, at most 4,000 characters; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}
