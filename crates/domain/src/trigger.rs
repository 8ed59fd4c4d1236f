//! Triggers: parsed reasons to act on a ticket.

use serde::{Deserialize, Serialize};

use crate::{
    ChecksConclusion, ChecksSummary, CommitId, Job, JobRequest, Lane, OutboundSettled, PullRequestRef,
    ReactionSubject, RecordKind, RunId, SkipReason, StoredRecord, TicketCost, TicketKey, TicketNews,
    Timestamp, WithdrawalReason,
};

/// Semantic identity of an event (`changelog:10023`, `checks:<repo>:<sha>:<digest>`). All channels give the
/// same key to the same event, so it counts once.
// Any text is legal: characters such as `.`, `*` and spaces, which NATS excludes from a subject token,
// disappear in the hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerKey(String);

impl TriggerKey {
    /// Creates a key from any text. Subjects contain its hash.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Channel that a trigger arrived through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerChannel {
    /// A webhook delivery from Jira or GitHub.
    Webhook,
    /// A poll of Jira or GitHub.
    Poll,
    /// A call of the API, also by the command line.
    Api,
    /// An outcome or a request of the reporter.
    Reporter,
}

/// A parsed reason to act on a ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The ticket to act on.
    pub ticket: TicketKey,
    /// The identity of the event.
    pub key: TriggerKey,
    /// Time of the event.
    pub at: Timestamp,
    /// The channel of the event.
    pub source: TriggerChannel,
    /// The acting user, by the name in the tracker.
    pub actor: Option<String>,
    /// The comment that gave an instruction. It gets a reaction as an acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ReactionSubject>,
    /// The event with its data.
    pub reason: TriggerReason,
}

impl StoredRecord for Trigger {
    const KIND: RecordKind = RecordKind::Trigger;
}

/// Event that a trigger reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TriggerReason {
    /// A user, a rule or a program requested a job.
    JobRequested(Box<JobRequest>),
    /// All checks of our pull request's head are complete.
    ChecksCompleted(ChecksSummary),
    /// A person pushed to the branch of our open pull request.
    HeadMoved {
        /// The pull request of the branch.
        pull_request: PullRequestRef,
        /// The new head of the branch.
        head: CommitId,
        /// Name of the person.
        by: String,
    },
    /// A person merged our pull request.
    PullRequestMerged {
        /// The merged pull request.
        pull_request: PullRequestRef,
        /// Name of the person.
        by: String,
    },
    /// A pull request of another author that names the ticket was merged.
    MergedElsewhere {
        /// The merged pull request.
        pull_request: PullRequestRef,
        /// Name of the person.
        by: String,
    },
    /// A person closed our pull request without a merge.
    PullRequestClosed {
        /// The closed pull request.
        pull_request: PullRequestRef,
        /// Name of the person.
        by: String,
    },
    /// A person reopened our pull request.
    PullRequestReopened {
        /// The reopened pull request.
        pull_request: PullRequestRef,
        /// Head at the time of the reopening.
        head: CommitId,
        /// Name of the person.
        by: String,
    },
    /// Our pull request has waited for a review for the period in the rules.
    ReviewAwaited {
        /// The pull request that waits.
        pull_request: PullRequestRef,
        /// Logins of the requested reviewers.
        reviewers: Vec<String>,
        /// Time of the review request.
        since: Timestamp,
    },
    /// A requested review by Journeyman is no longer wanted.
    ReviewWithdrawn {
        /// Reason for the withdrawal.
        why: WithdrawalReason,
    },
    /// A job was requested, and a skip rule applies.
    Skipped(SkipReason),
    /// A user requested a stop of the ticket's runs.
    StopRequested {
        /// The run to stop; absent: all active runs.
        run: Option<RunId>,
    },
    /// A user requested a retry: a waiting run continues at once, a quarantined ticket continues from its
    /// current state.
    RetryRequested,
    /// A person decided at an approval gate.
    Decided(GateDecision),
    /// The reporter completed a report.
    ReportSettled(OutboundSettled),
    /// A user asked for the cost of the ticket's runs.
    CostAsked {
        /// The pull request of the question; absent: it was asked on the ticket.
        on: Option<PullRequestRef>,
        /// Cost of the ticket's runs.
        cost: TicketCost,
    },
    /// An event on the ticket that is input for its active runs.
    NewsArrived(TicketNews),
}

impl TriggerReason {
    /// Returns the job of the run that the event opens; `None` when it opens none.
    pub fn job(&self) -> Option<Job> {
        match self {
            Self::JobRequested(request) => Some(request.job),
            Self::ChecksCompleted(checks) => Some(match checks.conclusion {
                ChecksConclusion::Success | ChecksConclusion::Absent => Job::MarkReady,
                ChecksConclusion::Failure => Job::FixCi,
            }),
            Self::HeadMoved { .. } => Some(Job::BackToDraft),
            Self::PullRequestReopened { .. } => Some(Job::Reopen),
            Self::ReviewAwaited { .. } => Some(Job::Remind),
            Self::PullRequestMerged { .. }
            | Self::MergedElsewhere { .. }
            | Self::PullRequestClosed { .. } => Some(Job::Finish),
            Self::Skipped(_)
            | Self::ReviewWithdrawn { .. }
            | Self::StopRequested { .. }
            | Self::RetryRequested
            | Self::Decided(_)
            | Self::ReportSettled(_)
            | Self::CostAsked { .. }
            | Self::NewsArrived(_) => None,
        }
    }

    /// Returns the lane of that run.
    pub fn lane(&self) -> Option<Lane> {
        let repository = if let Self::JobRequested(request) = self {
            &request.repository
        } else {
            &self.pull_request()?.repository
        };
        Some(self.job()?.lane(repository))
    }

    /// Returns the branch of the run, if it is known in advance.
    pub fn branch(&self) -> Option<&str> {
        self.pull_request()
            .map(|pull_request| pull_request.branch.as_str())
    }

    /// Returns the pull request that it is about: ours, or one whose merge finishes the ticket.
    pub fn pull_request(&self) -> Option<&PullRequestRef> {
        match self {
            Self::JobRequested(request) => Some(request.about.pull_request()?.0),
            Self::ChecksCompleted(checks) => Some(&checks.pull_request),
            Self::HeadMoved { pull_request, .. }
            | Self::PullRequestMerged { pull_request, .. }
            | Self::MergedElsewhere { pull_request, .. }
            | Self::PullRequestReopened { pull_request, .. }
            | Self::ReviewAwaited { pull_request, .. }
            | Self::PullRequestClosed { pull_request, .. } => Some(pull_request),
            Self::Skipped(_)
            | Self::ReviewWithdrawn { .. }
            | Self::StopRequested { .. }
            | Self::RetryRequested
            | Self::Decided(_)
            | Self::ReportSettled(_)
            | Self::CostAsked { .. }
            | Self::NewsArrived(_) => None,
        }
    }
}

/// A person's decision at an approval gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateDecision {
    /// The waiting run.
    pub run: RunId,
    /// The commit that it is about. An approval permits the push of this commit only.
    pub head: CommitId,
    /// The verdict of the person.
    pub verdict: DecisionVerdict,
    /// Requested changes for `revise`; at most 8,000 characters.
    #[serde(default)]
    pub feedback: String,
}

/// The three verdicts at an approval gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionVerdict {
    /// The reporter may push the commit.
    Approve,
    /// The run stops.
    Reject,
    /// The model receives the feedback and continues.
    Revise,
}
