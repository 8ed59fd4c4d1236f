//! Answers to a pull-request call and to its dry run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallProblem, ObservedIssue, ProblemKind, WritePlan};

/// Result of a call: whether the pull request exists afterwards. Failures of Jira do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The pull request exists.
    Success,
    /// No pull request was opened.
    Failed,
}

/// Result for the Jira issue of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JiraStatus {
    /// True when the issue has a link to the pull request, or a comment that names it.
    pub linked: bool,
    /// True when the issue is in the status for code review.
    pub transitioned: bool,
    /// Status of the issue, as far as it is known.
    pub current_state: Option<String>,
    /// First failure of an operation on the issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Answer of a call, in the form of `docs/schemas/pull-request-output.schema.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolAnswer {
    /// Success when the pull request exists.
    pub status: CallStatus,
    /// Duration of the whole call, in milliseconds.
    pub execution_time_ms: u64,
    /// URL of the pull request.
    pub pr_url: Option<String>,
    /// Number of the pull request.
    pub pr_number: Option<u64>,
    /// Result for the issue.
    pub jira_status: JiraStatus,
    /// True when the call asked for a review-ready pull request and it is ready.
    pub marked_ready: bool,
    /// Failed operations with their reasons.
    pub errors: Vec<CallProblem>,
}

impl ProtocolAnswer {
    /// Answer without a pull request, for these reasons.
    pub fn failed(errors: Vec<CallProblem>) -> Self {
        Self {
            status: CallStatus::Failed,
            execution_time_ms: 0,
            pr_url: None,
            pr_number: None,
            jira_status: JiraStatus::default(),
            marked_ready: false,
            errors,
        }
    }

    /// Answer with a pull request, before the operations on the issue.
    pub fn opened(number: u64, url: &str, issue: &ObservedIssue) -> Self {
        let current_state = match issue {
            ObservedIssue::There { status, .. } => Some(status.clone()),
            ObservedIssue::NotAsked | ObservedIssue::Unseen(_) => None,
        };
        Self {
            status: CallStatus::Success,
            pr_url: Some(url.to_owned()),
            pr_number: Some(number),
            jira_status: JiraStatus {
                current_state,
                ..JiraStatus::default()
            },
            // The remaining fields have the same initial values as in a failed answer.
            ..Self::failed(Vec::new())
        }
    }

    /// Records an operation that Jira did not do.
    pub fn without_jira(&mut self, problem: CallProblem) {
        // The protocol requires a short sentence here and a longer one among the errors.
        let missing = problem
            .context
            .jira_key
            .as_ref()
            .filter(|_| problem.kind == ProblemKind::JiraIssueNotFound);
        let said = match missing {
            Some(key) => format!("Jira issue {key} not found"),
            None => problem
                .context
                .error_output
                .as_ref()
                .unwrap_or(&problem.message)
                .clone(),
        };
        // The protocol has room for one failure here, so the first one stays.
        self.jira_status.error.get_or_insert(said);
        self.errors.push(problem);
    }
}

/// Response of a dry run, in the form of `docs/schemas/pull-request-dry-run.schema.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunAnswer {
    /// Always true, as nothing was written.
    pub dry_run: bool,
    /// URL of the pull request that exists already.
    pub pr_url: Option<String>,
    /// Writes in their order, each with its kind in the field `write`.
    pub would_write: Vec<Value>,
    /// Failures of Jira that are known in advance.
    pub errors: Vec<CallProblem>,
}

impl From<WritePlan> for DryRunAnswer {
    fn from(plan: WritePlan) -> Self {
        // A step contains strings, numbers and flags only, so its conversion cannot fail.
        let value = |step| serde_json::to_value(step).unwrap_or_default();
        Self {
            dry_run: true,
            pr_url: plan.open.map(|open| open.url),
            would_write: plan.steps.iter().map(value).collect(),
            errors: plan.problems,
        }
    }
}
