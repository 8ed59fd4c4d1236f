//! Requests for our pull requests that wait for another run of their checks, or for a review.

use serde::{Deserialize, Serialize};

use super::request::RequestProperties;
use crate::{CommitId, FailedCheck, PullRequestRef, RepositoryName, Timestamp};

/// Request after failures outside of the change: run the failed jobs again, notify the ticket, keep the
/// draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksRerun {
    /// The checked pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// The failed checks.
    pub failed: Vec<FailedCheck>,
    /// Ids of the GitHub Actions runs that contain the failed jobs.
    pub runs: Vec<u64>,
}

impl RequestProperties for ChecksRerun {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("run the failed checks of #{} again", self.pull_request.number)
    }
}

/// Request to remind the reviewers of our pull request by a comment on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewAwaited {
    /// The pull request that waits.
    pub pull_request: PullRequestRef,
    /// Logins of the requested reviewers.
    pub reviewers: Vec<String>,
    /// Time of the review request.
    pub since: Timestamp,
}

impl RequestProperties for ReviewAwaited {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("remind of the review of #{}", self.pull_request.number)
    }
}
