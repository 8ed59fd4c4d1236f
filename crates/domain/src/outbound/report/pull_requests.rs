//! Requests for branches and pull requests.

use serde::{Deserialize, Serialize};

use super::{BranchPush, PushProposal, RequestProperties};
use crate::{
    identity::{commit::CommitId, repository::RepositoryName},
    trigger::{
        job_subject::{LeftThreads, ThreadDisposition, ThreadReply},
        pull_request::PullRequestRef,
        pull_request_event::PullRequestEvent,
    },
    work::{handover::ChangeDescription, pull_request_review::ReviewOfChange, resolution::DroppedHunk},
};

impl RequestProperties for BranchPush {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn push(&self) -> Option<&BranchPush> {
        Some(self)
    }

    fn summary(&self) -> String {
        format!("push {} at {}", self.branch, self.head.short())
    }
}

/// Request for a complete change without a pull request: push its branch, move the ticket to done, show the
/// change on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDelivered {
    /// The push of the change.
    #[serde(flatten)]
    pub push: BranchPush,
    /// Facts of the change, which the reporter renders.
    pub description: Box<ChangeDescription>,
}

impl RequestProperties for WorkDelivered {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.push.repository)
    }

    fn push(&self) -> Option<&BranchPush> {
        Some(&self.push)
    }

    fn summary(&self) -> String {
        let push = &self.push;
        format!(
            "push {} at {} and close the ticket",
            push.branch,
            push.head.short()
        )
    }
}

/// Request to open the draft pull request, or to adopt the open one of the same branch, and to link it on the
/// ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestOpening {
    /// The repository of the pull request.
    pub repository: RepositoryName,
    /// Head branch, pushed before.
    pub branch: String,
    /// The target branch.
    pub base_branch: String,
    /// The title; at most 256 characters.
    pub title: String,
    /// Markdown by the model, at most 60,000 characters. The reporter neutralizes mentions and keywords.
    /// Empty if there is a description.
    #[serde(default)]
    pub body: String,
    /// Facts of the change, which the reporter renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<ChangeDescription>>,
}

impl RequestProperties for PullRequestOpening {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("open draft pull request \"{}\"", self.title)
    }
}

/// Request after a repair of failed checks: notify the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksRepaired {
    /// The repaired pull request.
    pub pull_request: PullRequestRef,
    /// The pushed commit; absent: the branch already contained the repair.
    pub commit: Option<CommitId>,
    /// Method of the repair.
    pub strategy: RepairStrategy,
    /// The entries of `ci.auto_fix` that changed files, if they made the repair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Summary of the failure and its repair.
    pub summary: String,
}

/// Method of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairStrategy {
    /// The commands of `ci.auto_fix` made the repair, without a model.
    AutoFix,
    /// The model made the repair.
    Model,
}

impl RequestProperties for ChecksRepaired {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "tell the ticket that the checks of #{} are repaired",
            self.pull_request.number
        )
    }
}

/// Request after a resolved conflict with the base branch: notify the ticket and the pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictResolved {
    /// The pull request that can be merged again.
    pub pull_request: PullRequestRef,
    /// Name of the base branch.
    pub base_branch: String,
    /// The merged commit of the base branch.
    pub base: CommitId,
    /// The pushed merge; absent: the branch already contained it.
    pub commit: Option<CommitId>,
    /// Summary of the resolution, written by the model.
    pub summary: String,
    /// Hunks of either side that the resolution changed or dropped, with the model's reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedHunk>,
}

impl RequestProperties for ConflictResolved {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "report that the conflict of #{} with {} is resolved",
            self.pull_request.number, self.base_branch
        )
    }
}

/// Request after work on a review: reply in its threads, and request the review again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewAddressed {
    /// The reviewed pull request.
    pub pull_request: PullRequestRef,
    /// Login of the reviewer.
    pub reviewer: String,
    /// The commit that was pushed for the review; absent: no change was necessary.
    pub commit: Option<CommitId>,
    /// Summary of the changes with their reasons, written by the model.
    pub summary: String,
    /// Replies, one per comment of the review.
    pub replies: Vec<ThreadReply>,
    /// Threads that are left to people; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftThreads>,
    /// Logins of the people who make decisions that need a person; empty: the reviewer and the ticket's
    /// assignee.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciders: Vec<String>,
}

impl ReviewAddressed {
    /// Returns true when the whole review is left to people.
    pub fn is_left(&self) -> bool {
        self.left.is_some() && self.commit.is_none() && self.replies.is_empty() && self.summary.is_empty()
    }

    /// Returns the number of comments that wait for a person's decision.
    pub fn undecided(&self) -> usize {
        let is_open = |reply: &&ThreadReply| reply.disposition == ThreadDisposition::Asked;
        self.replies.iter().filter(is_open).count()
    }
}

impl RequestProperties for ReviewAddressed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "reply to the review of #{} by {}",
            self.pull_request.number, self.reviewer
        )
    }
}

/// Request to submit the review of another author's pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestReviewed {
    /// The reviewed pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was reviewed.
    pub head: CommitId,
    /// Contents of the review.
    pub review: ReviewOfChange,
}

impl RequestProperties for PullRequestReviewed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        let Self {
            pull_request, review, ..
        } = self;
        format!(
            "review #{} with {} comments",
            pull_request.number,
            review.comments.len()
        )
    }
}

impl RequestProperties for PushProposal {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.push.repository)
    }

    fn asks_about(&self) -> Option<&CommitId> {
        Some(&self.push.head)
    }

    fn push(&self) -> Option<&BranchPush> {
        Some(&self.push)
    }

    fn summary(&self) -> String {
        format!("ask a person to decide about {}", self.push.head.short())
    }
}

impl RequestProperties for PullRequestEvent {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request().repository)
    }

    fn summary(&self) -> String {
        self.summary()
    }
}
