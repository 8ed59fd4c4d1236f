//! Pull requests that callers ask for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pull request to open, for a branch that GitHub has; `docs/schemas/pull-request-api-input.schema.json`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PullRequestBody {
    /// The repository, e.g. `acme/shop`, or `ghe:acme/shop` on an instance.
    pub repository: String,
    /// The branch with the change.
    pub branch: String,
    /// The branch that it should be merged into; `main` unless given.
    pub base_branch: Option<String>,
    /// The title, 5 characters or more.
    pub title: String,
    /// The description, Markdown, 10 characters or more.
    pub description: String,
    /// The Jira issue to link and to move to code review.
    pub jira_key: Option<String>,
    /// Ready for review at once; false unless given.
    pub mark_ready: Option<bool>,
    /// Opened as a draft; true unless given.
    pub draft: Option<bool>,
    /// The transition to code review, where several match: its name or that of the status that it leads to.
    pub transition: Option<String>,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// No reporter has taken it up.
    Waiting,
    /// A reporter carries it out.
    Running,
    /// It has its answer.
    Answered,
}

/// A call and its answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PullRequestCallView {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: CallState,
    /// The output of `journeyman pr`, as `docs/schemas/pull-request-output.schema.json` describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub answer: Option<serde_json::Value>,
}
