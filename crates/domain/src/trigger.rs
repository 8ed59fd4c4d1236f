//! Triggers: parsed reasons to act on a ticket.

use serde::{Deserialize, Serialize};

use crate::{
    ChecksSummary, CommitId, Conclusion, Job, JobRequest, Lane, News, PullRequestRef, Reactable, RecordKind,
    ReportSettled, RunId, SkipReason, Stored, TicketCost, TicketKey, Timestamp, Withdrawal,
};

/// The semantic identity of what happened (`changelog:10023`, `checks:<repo>:<sha>:<digest>`): the same happening
/// gives the same key through every door, so it counts once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerKey(String);

impl TriggerKey {
    /// A key from its text; any text is legal, subjects carry its hash.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The door a trigger came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A webhook delivery.
    Webhook,
    /// A poll of Jira or GitHub.
    Poll,
    /// The API or the command line.
    Api,
    /// The reporter.
    Reporter,
}

/// A parsed reason to act on a ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The ticket.
    pub ticket: TicketKey,
    /// What happened, as an identity.
    pub key: TriggerKey,
    /// When it happened.
    pub at: Timestamp,
    /// The door.
    pub source: Source,
    /// Who acted, as the outside names them.
    pub actor: Option<String>,
    /// The comment that gave an order; whoever wrote it sees that it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Reactable>,
    /// What happened.
    pub reason: Reason,
}

impl Stored for Trigger {
    const KIND: RecordKind = RecordKind::Trigger;
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reason {
    /// Somebody or something asked for a job.
    JobRequested(Box<JobRequest>),
    /// All checks of our pull request's head are complete.
    ChecksCompleted(ChecksSummary),
    /// A person pushed to the branch of our open pull request.
    HeadMoved {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Its head now.
        head: CommitId,
        /// Who pushed.
        by: String,
    },
    /// A person merged our pull request.
    PullRequestMerged {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Who merged.
        by: String,
    },
    /// A pull request of somebody else was merged that names the ticket.
    MergedElsewhere {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Who merged.
        by: String,
    },
    /// A person closed our pull request without merging it.
    PullRequestClosed {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Who closed.
        by: String,
    },
    /// A person opened a pull request of ours again.
    PullRequestReopened {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Its head.
        head: CommitId,
        /// Who did.
        by: String,
    },
    /// A pull request of ours has waited for a review as long as the rules allow.
    ReviewAwaited {
        /// The pull request.
        pull_request: PullRequestRef,
        /// Logins of those who are asked for it.
        reviewers: Vec<String>,
        /// When it was asked for.
        since: Timestamp,
    },
    /// A review of ours that was asked for is not wanted any more.
    ReviewWithdrawn {
        /// Why not.
        why: Withdrawal,
    },
    /// A job was asked for and a skip rule says no.
    Skipped(SkipReason),
    /// Somebody asked to stop the ticket's runs.
    StopRequested {
        /// Only this run; all live runs when absent.
        run: Option<RunId>,
    },
    /// Somebody asked to try again: a waiting run at once, a quarantined ticket from where it stands.
    RetryRequested,
    /// A person decided at an approval gate.
    Decided(Decision),
    /// The reporter finished with a report.
    ReportSettled(ReportSettled),
    /// Somebody asked what the ticket's runs have taken.
    CostAsked {
        /// Where they asked, when that is a pull request.
        on: Option<PullRequestRef>,
        /// What they have taken.
        cost: TicketCost,
    },
    /// Something was said about the ticket: input for its live runs.
    NewsArrived(News),
}

impl Reason {
    /// The kind of run that it opens; `None` when it opens none.
    pub fn job(&self) -> Option<Job> {
        match self {
            Self::JobRequested(request) => Some(request.job),
            Self::ChecksCompleted(checks) => Some(match checks.conclusion {
                Conclusion::Success | Conclusion::Absent => Job::MarkReady,
                Conclusion::Failure => Job::FixCi,
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

    /// Where that run waits for its turn.
    pub fn lane(&self) -> Option<Lane> {
        let repository = if let Self::JobRequested(request) = self {
            &request.repository
        } else {
            &self.pull_request()?.repository
        };
        Some(self.job()?.lane(repository))
    }

    /// The branch that the run works on, when that is known beforehand.
    pub fn branch(&self) -> Option<&str> {
        self.pull_request()
            .map(|pull_request| pull_request.branch.as_str())
    }

    /// The pull request that it is about, when it is about one of ours or one that finishes the ticket.
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
pub struct Decision {
    /// The run that waits.
    pub run: RunId,
    /// The commit that it is about. An approval of one commit allows the push of no other.
    pub head: CommitId,
    /// Yes, no, or once more.
    pub verdict: Verdict,
    /// For `revise`: what to change. At most 8,000 characters.
    #[serde(default)]
    pub feedback: String,
}

/// The three answers at an approval gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Push it.
    Approve,
    /// Stop the run.
    Reject,
    /// Back to the model with the feedback.
    Revise,
}
