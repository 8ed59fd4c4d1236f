//! Requests for discussions and the issues that follow from them.

use serde::{Deserialize, Serialize};

use super::request::RequestProperties;
use crate::{CitedAnswer, DiscussionTask, PlannedIssue, RepositoryName};

/// Request to open planned issues as sub-issues of an existing issue or of the first of them.
///
/// Issues that an earlier attempt of the same report opened are not opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenIssues {
    /// The repository that receives the issues.
    pub repository: RepositoryName,
    /// Number of the parent issue; absent: the first planned issue is the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The issues. The reporter refuses all of them when there are more than the repository's rules allow.
    pub issues: Vec<PlannedIssue>,
}

/// Request to post the result of a task in a discussion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscussionResult {
    /// The repository whose rules apply.
    pub repository: RepositoryName,
    /// The completed task.
    pub task: DiscussionTask,
    /// Result of the task.
    pub answer: CitedAnswer,
}

impl RequestProperties for DiscussionResult {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("{} the discussion", self.task.as_str())
    }
}

impl RequestProperties for OpenIssues {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        let titles: Vec<&str> = self.issues.iter().map(|issue| issue.title.as_str()).collect();
        format!("open {} issues: {}", titles.len(), titles.join("; "))
    }
}
