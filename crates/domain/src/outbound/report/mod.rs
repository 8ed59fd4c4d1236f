//! Reports: requests to the reporter with their outcomes.

mod pull_requests;
mod requests;
mod tickets;

pub use pull_requests::{
    ChecksRepaired, ConflictResolved, PullRequestOpening, PullRequestReviewed, RepairStrategy,
    ReviewAddressed, WorkDelivered,
};
pub use requests::{OutboundAction, RehearsalRequest};
pub use tickets::{
    CostReply, DiscussionResult, EffortForecast, FailedCommit, HelpReply, JobProgress, OpenIssues,
    PlanProposed, ProgressUpdate, QuestionAnswered, QuestionAsked, ReactionRequest, RetryScheduled,
    RunStopped, TicketQuarantined, TicketTriaged, UnreadableRecordNotice, WorkOrigin, WorkStarted,
};

use serde::{Deserialize, Serialize};

use crate::{
    identity::{
        commit::CommitId,
        ids::{OutboundId, RunId},
        object::ObjectRef,
        repository::RepositoryName,
        ticket::TicketKey,
        time::Timestamp,
    },
    journal::{
        fence::{ReporterFence, RunFence},
        kind::RecordKind,
        record_format::StoredRecord,
    },
    outbound::{metadata_pattern::MetadataPattern, refusal::OutboundRefusal},
    rules::scope::ScopeInputs,
    trigger::pull_request::PullRequestRef,
    work::{handover::ChangeDescription, resolution::DroppedHunk},
};

/// A request to the reporter. Its effects are performed once, even if it is delivered repeatedly.
// The reporter accepts older fences: a successor repeats the request under the same id, so the ledger
// performs it once, and a rejection could lose a legitimate report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundRequest {
    /// Unique id, the deduplication key in the log.
    pub id: OutboundId,
    /// The ticket that the report belongs to.
    pub ticket: TicketKey,
    /// The requesting run; absent for notices.
    pub run: Option<RunId>,
    /// Fence of the requesting planner.
    pub fence: RunFence,
    /// Time of the request.
    pub at: Timestamp,
    /// Progress of the run; absent for notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// The requested effects.
    pub request: OutboundAction,
}

impl StoredRecord for OutboundRequest {
    const KIND: RecordKind = RecordKind::Report;
}

impl OutboundRequest {
    /// Creates a report without a run: no run requests it or receives its outcome.
    pub fn notice(
        id: OutboundId,
        ticket: TicketKey,
        fence: RunFence,
        at: Timestamp,
        request: OutboundAction,
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

/// Position up to which a ticket's reports are settled. The reporter writes it, and the sweeper compares it
/// with the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundCursor {
    /// Stream sequence of the last settled report.
    pub sequence: u64,
    /// Fence of the reporter that wrote it.
    pub fence: ReporterFence,
    /// Number of failed attempts for the next report.
    #[serde(default)]
    pub tries: u32,
    /// Time of the first of these attempts.
    #[serde(default)]
    pub since: Option<Timestamp>,
    // The count is part of the cursor, which is written in any case, and survives restarts. Five crashes
    // refuse the report.
    /// Number of reporters that crashed on the next report; absent: the last reporter released the ticket
    /// properly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<u32>,
}

impl StoredRecord for OutboundCursor {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// Request to push a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchPush {
    /// The repository to push to.
    pub repository: RepositoryName,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The recorded base that the commits must descend from.
    pub base: CommitId,
    /// The new head.
    pub head: CommitId,
    /// The pack with every object that the base lacks.
    pub pack: ObjectRef,
    // A push never overwrites commits of another author: the author who pushed first wins.
    /// The commit that the remote branch must point at (`--force-with-lease`); absent: the branch must not
    /// exist.
    pub expected: Option<CommitId>,
    /// Ticket kind and widened modules of the change, for rules with modules; absent: the scope is not
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeInputs>,
    /// The merge that the first commit makes; absent: the commits have one parent each. The base is then a commit
    /// of the base branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Box<BranchMerge>>,
}

/// Merge of the base branch into the branch of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchMerge {
    /// Head of the pull request before the merge, the first parent.
    pub head: CommitId,
    /// Hunks of either side that the result lacks on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedHunk>,
}

/// Request for a person's decision about a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushProposal {
    /// The push to decide about.
    #[serde(flatten)]
    pub push: BranchPush,
    /// Facts of the change, which the reporter renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<ChangeDescription>>,
}

/// Outcome of a report. It returns to the run as a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundSettled {
    /// Id of the report.
    pub report: OutboundId,
    /// The run that requested it.
    pub run: RunId,
    /// Outcome of the report.
    pub outcome: OutboundOutcome,
}

/// Outcome of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutboundOutcome {
    /// Every effect is done.
    Done(OutboundReceipt),
    /// Policy or an external service refused the request.
    Refused(OutboundRefusal),
    /// The report failed after every retry.
    Failed {
        /// Description without secrets.
        detail: String,
    },
}

impl OutboundOutcome {
    /// Returns the receipt of a completed report.
    pub const fn receipt(&self) -> Option<&OutboundReceipt> {
        match self {
            Self::Done(receipt) => Some(receipt),
            Self::Refused(_) | Self::Failed { .. } => None,
        }
    }
}

impl StoredRecord for OutboundOutcome {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// Result of a completed report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutboundReceipt {
    /// The branch is pushed to the remote.
    Pushed {
        /// Name of the branch.
        branch: String,
        /// Its head on the remote.
        head: CommitId,
        /// The whole difference to the base as text in git's format; absent: it is too long, the branch was at the
        /// head already, or the record is older than the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<ObjectRef>,
    },
    /// The pull request is open.
    PullRequestOpened(PullRequestRef),
    /// The question about a push was posted.
    DecisionAsked {
        /// The commit that the decision is about.
        head: CommitId,
        /// The whole difference as text in git's format, bounded by the reporter's settings.
        diff: ObjectRef,
    },
    /// The text was posted. The run has no result to continue with.
    Told,
    /// The work was announced, and the repository requires patterns of its commits or its branch.
    Started {
        /// The patterns, by rulesets of the target branch and of the new one.
        patterns: Vec<MetadataPattern>,
    },
    /// Nothing was written; the receipt lists the effects that would be.
    Rehearsed {
        /// The rehearsed requests, in order.
        would: Vec<RehearsedEffects>,
    },
}

impl OutboundReceipt {
    /// Returns the commit and the difference that a question about a push showed.
    pub fn shown_change(&self) -> Option<(CommitId, ObjectRef)> {
        if let Self::DecisionAsked { head, diff } = self {
            Some((head.clone(), diff.clone()))
        } else {
            None
        }
    }

    /// Returns the pushed commit and its difference, if the reporter stored it.
    pub fn pushed_change(&self) -> Option<(CommitId, ObjectRef)> {
        if let Self::Pushed { head, diff, .. } = self {
            Some((head.clone(), diff.clone()?))
        } else {
            None
        }
    }
}

/// Effects of one rehearsed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsedEffects {
    /// The request, on one line.
    pub request: String,
    /// The names of its effects, in order.
    pub effects: Vec<String>,
    /// Text that people would read on the ticket or pull request, Markdown, at most 4,000 characters; may be
    /// empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// Properties that each request to the reporter provides.
trait RequestProperties {
    /// The repository whose rules govern it; absent: the ticket's.
    fn repository(&self) -> Option<&RepositoryName> {
        None
    }

    /// The commit or plan that a person is asked to decide about.
    fn asks_about(&self) -> Option<&CommitId> {
        None
    }

    /// The push that it contains, with the pack of the commits.
    fn push(&self) -> Option<&BranchPush> {
        None
    }

    /// Returns true when its outcome is the result of a tool call of the model.
    fn answers_call(&self) -> bool {
        false
    }

    /// Summary on one line, for readers of journals.
    fn summary(&self) -> String;
}
