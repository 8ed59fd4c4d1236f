//! What callers get back.

use serde::{Deserialize, Serialize};

use crate::{IssueSeen, Kind, Problem};

/// Whether there is a pull request in the end. What Jira did not do does not change that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is one.
    Success,
    /// There is none.
    Failed,
}

/// What became of the issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JiraStatus {
    /// The pull request is linked, or named in a comment.
    pub linked: bool,
    /// The issue is in the status for code review.
    pub transitioned: bool,
    /// The issue's status, as far as it is known.
    pub current_state: Option<String>,
    /// Why something of it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer, as `docs/schemas/pull-request-output.schema.json` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether there is a pull request.
    pub status: Status,
    /// How long all of it took.
    pub execution_time_ms: u64,
    /// Its page.
    pub pr_url: Option<String>,
    /// Its number.
    pub pr_number: Option<u64>,
    /// What became of the issue.
    pub jira_status: JiraStatus,
    /// It was to be ready for review, and is.
    pub marked_ready: bool,
    /// What was not done, and why.
    pub errors: Vec<Problem>,
}

impl Answer {
    /// No pull request, for these reasons.
    pub fn failed(errors: Vec<Problem>) -> Self {
        Self {
            status: Status::Failed,
            execution_time_ms: 0,
            pr_url: None,
            pr_number: None,
            jira_status: JiraStatus::default(),
            marked_ready: false,
            errors,
        }
    }

    /// There is one; nothing else is done yet.
    pub fn opened(number: u64, url: &str, issue: &IssueSeen) -> Self {
        let current_state = match issue {
            IssueSeen::There { status, .. } => Some(status.clone()),
            IssueSeen::NotAsked | IssueSeen::Unseen(_) => None,
        };
        Self {
            status: Status::Success,
            pr_url: Some(url.to_owned()),
            pr_number: Some(number),
            jira_status: JiraStatus {
                current_state,
                ..JiraStatus::default()
            },
            ..Self::failed(Vec::new())
        }
    }

    /// Something that Jira did not do.
    pub fn without_jira(&mut self, problem: Problem) {
        // The protocol has a short sentence here and a longer one among the errors.
        let missing = problem
            .context
            .jira_key
            .as_ref()
            .filter(|_| problem.kind == Kind::JiraIssueNotFound);
        let said = match missing {
            Some(key) => format!("Jira issue {key} not found"),
            None => problem
                .context
                .error_output
                .as_ref()
                .unwrap_or(&problem.message)
                .clone(),
        };
        self.jira_status.error.get_or_insert(said);
        self.errors.push(problem);
    }
}
