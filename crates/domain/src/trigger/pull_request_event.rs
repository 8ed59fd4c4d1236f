//! Events of pull requests: one value from the decision of ingest to the effects of the reporter.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{commit::CommitId, time::Timestamp},
    trigger::{
        conflict::ConflictedBase,
        job::Job,
        pull_request::{
            ChecksConclusion, ChecksOutcome, ChecksSummary, FailedCheck, OutdatedBase, PullRequestRef,
            PullRequestStatus, RepairEnd,
        },
    },
};

/// An event of a pull request with its data.
///
/// A trigger reports it, and an outbound request carries it to the reporter, which performs its effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequestEvent {
    /// All checks of our pull request's head are complete.
    ChecksCompleted(ChecksSummary),
    /// A person pushed to the branch of our open pull request.
    PushedByOthers(PullRequestHead),
    /// A person merged our pull request.
    Merged(PullRequestEnd),
    /// A pull request of another author that names the ticket was merged.
    MergedElsewhere(PullRequestEnd),
    /// A person closed our pull request without a merge.
    Closed(PullRequestEnd),
    /// A person reopened our pull request.
    Reopened(PullRequestHead),
    /// Our pull request lacks commits of its base branch.
    Outdated(OutdatedBase),
    /// Our pull request conflicts with its base branch.
    Conflicted(ConflictedBase),
    /// Our pull request has waited for a review for the period in the rules.
    ReviewAwaited(AwaitedReview),
}

/// A head of a pull request that a person caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestHead {
    /// The pull request of the head.
    pub pull_request: PullRequestRef,
    /// The head after the event.
    pub head: CommitId,
    /// Name of the person.
    pub by: String,
}

/// A merge or a close of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestEnd {
    /// The pull request that ended.
    pub pull_request: PullRequestRef,
    /// Name of the person; GitHub for a pull request that moved.
    pub by: String,
    /// Present place of a pull request that moved, e.g. `acme/other#220`; absent for other ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

/// A pending review of our pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedReview {
    /// The pull request that waits.
    pub pull_request: PullRequestRef,
    /// Logins of the requested reviewers, and requested teams.
    pub reviewers: Vec<String>,
    /// Time of the review request.
    pub since: Timestamp,
}

impl PullRequestEvent {
    /// Returns the job of the run that requests the effects.
    pub const fn job(&self) -> Job {
        match self {
            Self::ChecksCompleted(checks) => match checks.outcome() {
                ChecksOutcome::Passed | ChecksOutcome::Missing => Job::MarkReady,
                ChecksOutcome::Rerun | ChecksOutcome::Failed => Job::FixCi,
            },
            Self::PushedByOthers(_) => Job::BackToDraft,
            Self::Merged(_) | Self::MergedElsewhere(_) | Self::Closed(_) => Job::Finish,
            Self::Reopened(_) => Job::Reopen,
            Self::Outdated(_) => Job::UpdateBase,
            Self::Conflicted(_) => Job::ResolveConflict,
            Self::ReviewAwaited(_) => Job::Remind,
        }
    }

    /// Returns the pull request that it is about: ours, or one whose merge finishes the ticket.
    pub const fn pull_request(&self) -> &PullRequestRef {
        match self {
            Self::ChecksCompleted(checks) => &checks.pull_request,
            Self::PushedByOthers(pushed) | Self::Reopened(pushed) => &pushed.pull_request,
            Self::Merged(ended) | Self::MergedElsewhere(ended) | Self::Closed(ended) => &ended.pull_request,
            Self::Outdated(outdated) => &outdated.pull_request,
            Self::Conflicted(conflict) => &conflict.pull_request,
            Self::ReviewAwaited(awaited) => &awaited.pull_request,
        }
    }

    /// Returns the head that the event reports; `None` when it reports none.
    pub const fn head(&self) -> Option<&CommitId> {
        match self {
            Self::ChecksCompleted(checks) => Some(&checks.head),
            Self::PushedByOthers(pushed) | Self::Reopened(pushed) => Some(&pushed.head),
            Self::Outdated(outdated) => Some(&outdated.head),
            Self::Conflicted(conflict) => Some(&conflict.head),
            Self::Merged(_) | Self::MergedElsewhere(_) | Self::Closed(_) | Self::ReviewAwaited(_) => None,
        }
    }

    /// Returns the status that the event gives to our pull request; `None` when it keeps its status.
    pub const fn new_status(&self) -> Option<PullRequestStatus> {
        match self {
            Self::Merged(_) => Some(PullRequestStatus::Merged),
            Self::Closed(_) => Some(PullRequestStatus::Closed),
            Self::Reopened(_) => Some(PullRequestStatus::Open),
            Self::ChecksCompleted(_)
            | Self::PushedByOthers(_)
            | Self::MergedElsewhere(_)
            | Self::Outdated(_)
            | Self::Conflicted(_)
            | Self::ReviewAwaited(_) => None,
        }
    }

    /// Summary of the requested effects on one line, for readers of journals.
    pub fn summary(&self) -> String {
        let number = self.pull_request().number;
        match self {
            Self::ChecksCompleted(checks) => match checks.outcome() {
                ChecksOutcome::Passed => format!("mark #{number} ready"),
                ChecksOutcome::Missing => {
                    format!("no check reports on #{number}: mark it ready if none is configured")
                }
                ChecksOutcome::Rerun => format!("run the failed checks of #{number} again"),
                ChecksOutcome::Failed => format!("tell that CI of #{number} is red"),
            },
            Self::PushedByOthers(pushed) => format!("{} pushed to #{number}: back to draft", pushed.by),
            Self::Merged(ended) => format!("#{number} was merged by {}: close the ticket", ended.by),
            Self::MergedElsewhere(ended) => {
                format!(
                    "#{number} of somebody else was merged by {}: close the ticket",
                    ended.by
                )
            }
            Self::Closed(PullRequestEnd {
                moved_to: Some(to), ..
            }) => format!("#{number} moved to {to}: tell the ticket"),
            Self::Closed(ended) => format!("#{number} was closed by {}: tell the ticket", ended.by),
            Self::Reopened(_) => format!("follow #{number} again"),
            Self::Outdated(outdated) => format!("update #{number} with {}", outdated.base_branch),
            Self::Conflicted(conflict) => {
                format!("report the conflict of #{number} with {}", conflict.base_branch)
            }
            Self::ReviewAwaited(_) => format!("remind of the review of #{number}"),
        }
    }
}

// A stored trigger and a stored request name an event differently, and earlier releases read and write these
// names. So the two stored enums contain the events as variants of their own, from this table.
/// Passes the events to the macro `$define` before `$rest`: variant, data, name in a trigger, name in a request.
///
/// Completed checks are missing, because a request has a name for each of their outcomes.
macro_rules! with_stored_events {
    ($define:ident { $($rest:tt)* }) => {
        $define! {
            events {
                PushedByOthers($crate::PullRequestHead): "head_moved", "pushed_by_others";
                Merged($crate::PullRequestEnd): "pull_request_merged", "merged";
                MergedElsewhere($crate::PullRequestEnd): "merged_elsewhere", "merged_elsewhere";
                Closed($crate::PullRequestEnd): "pull_request_closed", "closed";
                Reopened($crate::PullRequestHead): "pull_request_reopened", "reopened";
                Outdated($crate::OutdatedBase): "base_outdated", "outdated";
                Conflicted($crate::ConflictedBase): "base_conflicted", "conflicted";
                ReviewAwaited($crate::AwaitedReview): "review_awaited", "review_awaited";
            }
            $($rest)*
        }
    };
}

pub(crate) use with_stored_events;

/// Passed checks in a stored request.
#[derive(Serialize, Deserialize)]
pub(crate) struct PassedChecks {
    pull_request: PullRequestRef,
    head: CommitId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    page: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unfinished: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<String>,
}

/// Missing checks in a stored request.
#[derive(Serialize, Deserialize)]
pub(crate) struct MissingChecks {
    pull_request: PullRequestRef,
    head: CommitId,
}

/// Failed checks in a stored request.
#[derive(Serialize, Deserialize)]
pub(crate) struct FailedChecks {
    pull_request: PullRequestRef,
    head: CommitId,
    failed: Vec<FailedCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unrepaired: Option<RepairEnd>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    page: String,
}

/// Failed checks in a stored request whose jobs run again.
#[derive(Serialize, Deserialize)]
pub(crate) struct RepeatedChecks {
    pull_request: PullRequestRef,
    head: CommitId,
    failed: Vec<FailedCheck>,
    runs: Vec<u64>,
}

/// Completed checks in a stored request: one form for each outcome.
pub(crate) enum ChecksForm {
    Passed(PassedChecks),
    Missing(MissingChecks),
    Failed(FailedChecks),
    Repeated(RepeatedChecks),
}

impl From<ChecksSummary> for ChecksForm {
    fn from(checks: ChecksSummary) -> Self {
        let outcome = checks.outcome();
        let ChecksSummary {
            pull_request,
            head,
            conclusion: _,
            failed,
            unrepaired,
            rerun,
            asked,
            page,
            suspects: _,
            unfinished,
            ignored,
        } = checks;
        match outcome {
            ChecksOutcome::Passed => Self::Passed(PassedChecks {
                pull_request,
                head,
                page,
                unfinished,
                ignored,
            }),
            ChecksOutcome::Missing => Self::Missing(MissingChecks { pull_request, head }),
            ChecksOutcome::Rerun => Self::Repeated(RepeatedChecks {
                pull_request,
                head,
                failed,
                runs: rerun,
            }),
            ChecksOutcome::Failed => Self::Failed(FailedChecks {
                pull_request,
                head,
                failed,
                unrepaired,
                asked,
                page,
            }),
        }
    }
}

impl From<PassedChecks> for ChecksSummary {
    fn from(stored: PassedChecks) -> Self {
        Self {
            page: stored.page,
            unfinished: stored.unfinished,
            ignored: stored.ignored,
            ..Self::new(stored.pull_request, stored.head, ChecksConclusion::Success)
        }
    }
}

impl From<MissingChecks> for ChecksSummary {
    fn from(stored: MissingChecks) -> Self {
        Self::new(stored.pull_request, stored.head, ChecksConclusion::Absent)
    }
}

impl From<FailedChecks> for ChecksSummary {
    fn from(stored: FailedChecks) -> Self {
        Self {
            failed: stored.failed,
            unrepaired: stored.unrepaired,
            asked: stored.asked,
            page: stored.page,
            ..Self::new(stored.pull_request, stored.head, ChecksConclusion::Failure)
        }
    }
}

impl From<RepeatedChecks> for ChecksSummary {
    fn from(stored: RepeatedChecks) -> Self {
        Self {
            failed: stored.failed,
            rerun: stored.runs,
            ..Self::new(stored.pull_request, stored.head, ChecksConclusion::Failure)
        }
    }
}
