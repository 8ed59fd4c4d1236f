//! Requests about pull requests of ours that wait: for another try of their checks, or for a review.

use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::{CommitId, FailedCheck, PullRequestRef, RepositoryName, Timestamp};

/// CI is red for reasons outside the change: run the failed jobs again, tell the ticket, keep the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerunChecks {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// What failed.
    pub failed: Vec<FailedCheck>,
    /// The runs of GitHub Actions that they belong to.
    pub runs: Vec<u64>,
}

impl Request for RerunChecks {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("run the failed checks of #{} again", self.pull_request.number)
    }
}

/// A pull request of ours waits for a review: remind those who are asked for it, there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewAwaited {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Logins of those who are asked.
    pub reviewers: Vec<String>,
    /// When they were asked.
    pub since: Timestamp,
}

impl Request for ReviewAwaited {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("remind of the review of #{}", self.pull_request.number)
    }
}
