//! Requests about branches and pull requests.

use serde::{Deserialize, Serialize};

use super::{Proposal, PushBranch, request::Request};
use crate::{
    CommitId, Description, Disposition, FailedCheck, LeftThreads, PullRequestRef, RepairEnd, RepositoryName,
    ReviewOfChange, ThreadReply,
};

impl Request for PushBranch {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("push {} at {}", self.branch, self.head.short())
    }
}

/// A change is complete and ends the ticket without a pull request: push its branch, move the ticket to done, show the
/// change there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDelivered {
    /// The push.
    #[serde(flatten)]
    pub push: PushBranch,
    /// What it is, for the reporter to put into words.
    pub description: Box<Description>,
}

impl Request for WorkDelivered {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.push.repository)
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

/// Open the draft pull request, or adopt the open one of the same branch; link it on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPullRequest {
    /// Where.
    pub repository: RepositoryName,
    /// Head branch, pushed before.
    pub branch: String,
    /// The branch it should be merged into.
    pub base_branch: String,
    /// At most 256 characters.
    pub title: String,
    /// Markdown by the model, at most 60,000 characters; the reporter neutralises mentions and keywords. Empty where
    /// there is a description.
    #[serde(default)]
    pub body: String,
    /// What it says, for the reporter to put into words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<Description>>,
}

impl Request for OpenPullRequest {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("open draft pull request \"{}\"", self.title)
    }
}

/// CI is green: mark the pull request ready, tell the ticket, hand over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksPassed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// The page of the CI run, for people; empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
}

impl Request for ChecksPassed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("mark #{} ready", self.pull_request.number)
    }
}

/// No check reports: mark the pull request ready unless one is configured to, tell the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksAbsent {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit on which nothing reported.
    pub head: CommitId,
}

impl Request for ChecksAbsent {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "no check reports on #{}: mark it ready if none is configured",
            self.pull_request.number
        )
    }
}

/// CI is red: tell the ticket, keep the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksFailed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// What failed.
    pub failed: Vec<FailedCheck>,
    /// Why nothing is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrepaired: Option<RepairEnd>,
    /// Logins of those who are asked to look, where a person has to; empty: nobody is known by a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The page of the CI run, for people; empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
}

impl ChecksFailed {
    /// Why a person has to go on; absent: nobody is called.
    pub fn calls(&self) -> Option<RepairEnd> {
        self.unrepaired.filter(|why| why.calls_people())
    }
}

impl Request for ChecksFailed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("tell that CI of #{} is red", self.pull_request.number)
    }
}

/// Red checks were repaired: tell the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksRepaired {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was pushed; absent: the branch was right already.
    pub commit: Option<CommitId>,
    /// How.
    pub strategy: RepairStrategy,
    /// The entries of `ci.auto_fix` that changed something, where it was done by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// What was wrong, and what the repair does.
    pub summary: String,
}

/// How red checks were repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairStrategy {
    /// By the commands of `ci.auto_fix`, without a model.
    AutoFix,
    /// By the model.
    Model,
}

impl Request for ChecksRepaired {
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

/// A review was addressed: reply in its threads, and hand the pull request over once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewAddressed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Login of the reviewer.
    pub reviewer: String,
    /// The commit that was pushed for it; absent: nothing was changed.
    pub commit: Option<CommitId>,
    /// What was changed and why, by the model.
    pub summary: String,
    /// One for each comment of the review.
    pub replies: Vec<ThreadReply>,
    /// Threads that are left to people; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftThreads>,
    /// Logins of those who decide what only a person can; empty: the reviewer, and whoever has the ticket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciders: Vec<String>,
}

impl ReviewAddressed {
    /// Whether nothing of the review was worked on.
    pub fn is_left(&self) -> bool {
        self.left.is_some() && self.commit.is_none() && self.replies.is_empty() && self.summary.is_empty()
    }

    /// How many comments wait for a person's decision.
    pub fn undecided(&self) -> usize {
        let is_open = |reply: &&ThreadReply| reply.disposition == Disposition::Asked;
        self.replies.iter().filter(is_open).count()
    }
}

impl Request for ReviewAddressed {
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

/// A pull request of somebody was reviewed: submit the review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestReviewed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was reviewed.
    pub head: CommitId,
    /// What the review says.
    pub review: ReviewOfChange,
}

impl Request for PullRequestReviewed {
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

/// A person opened the pull request again: follow it once more, say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopened {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Its head.
    pub head: CommitId,
    /// Who opened it.
    pub by: String,
}

impl Request for Reopened {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("follow #{} again", self.pull_request.number)
    }
}

/// A person pushed to the branch of a pull request of ours: it is a draft until its checks pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedByOthers {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The head that was pushed.
    pub head: CommitId,
    /// Who pushed.
    pub by: String,
}

impl Request for PushedByOthers {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "{} pushed to #{}: back to draft",
            self.by, self.pull_request.number
        )
    }
}

/// A person merged: move the ticket to done, say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Who merged.
    pub by: String,
}

impl Request for Merged {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "#{} was merged by {}: close the ticket",
            self.pull_request.number, self.by
        )
    }
}

/// A pull request of somebody else was merged that names the ticket: move the ticket to done, say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedElsewhere {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Who merged.
    pub by: String,
}

impl Request for MergedElsewhere {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "#{} of somebody else was merged by {}: close the ticket",
            self.pull_request.number, self.by
        )
    }
}

/// A person closed the pull request unmerged: say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Who closed.
    pub by: String,
}

impl Request for Closed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "#{} was closed by {}: tell the ticket",
            self.pull_request.number, self.by
        )
    }
}

impl Request for Proposal {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.push.repository)
    }

    fn asks_about(&self) -> Option<&CommitId> {
        Some(&self.push.head)
    }

    fn summary(&self) -> String {
        format!("ask a person to decide about {}", self.push.head.short())
    }
}
