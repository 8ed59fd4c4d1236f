//! Requests for pull requests, and their answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pull request to open for a branch that exists on GitHub;
/// `docs/schemas/pull-request-api-input.schema.json`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PullRequestBody {
    /// The repository, e.g. `acme/shop`, or `ghe:acme/shop` on an instance.
    pub repository: String,
    /// The branch with the change.
    pub branch: String,
    /// The target branch; `main` by default.
    pub base_branch: Option<String>,
    /// The title; at least 5 characters.
    pub title: String,
    /// The description as Markdown; at least 10 characters.
    pub description: String,
    /// The Jira issue to link and to move to code review.
    pub jira_key: Option<String>,
    /// True to mark it ready for review at once; false by default.
    pub mark_ready: Option<bool>,
    /// True to open it as a draft; true by default.
    pub draft: Option<bool>,
    /// The transition to code review, if several match: its name or that of its target status.
    pub transition: Option<String>,
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// No reporter has started the request.
    Waiting,
    /// A reporter carries out the request.
    Running,
    /// The request has its answer.
    Answered,
}

/// A request with its answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PullRequestCallView {
    /// Id of the request.
    pub id: String,
    /// State of the request.
    pub state: CallState,
    /// The output of `journeyman pr` in the format of `docs/schemas/pull-request-output.schema.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub answer: Option<serde_json::Value>,
}
