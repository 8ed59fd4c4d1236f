//! Requests about discussions and the issues that follow from them.

use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::{Answered, DiscussionTask, PlannedIssue, RepositoryName};

/// Open issues that were planned, each as a part of one of them or of one that is there. An issue that was opened for this
/// report before is not opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenIssues {
    /// Where.
    pub repository: RepositoryName,
    /// The issue that they are parts of; absent: the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// At most as many as the repository's rules allow; the reporter refuses all of them when there are more.
    pub issues: Vec<PlannedIssue>,
}

/// Something was done in a discussion: say it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discussed {
    /// Whose rules hold.
    pub repository: RepositoryName,
    /// What was done.
    pub task: DiscussionTask,
    /// What came of it.
    pub answer: Answered,
}

impl Request for Discussed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("{} the discussion", self.task.as_str())
    }
}

impl Request for OpenIssues {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        let titles: Vec<&str> = self.issues.iter().map(|issue| issue.title.as_str()).collect();
        format!("open {} issues: {}", titles.len(), titles.join("; "))
    }
}
