//! Tools as the model sees them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What describes a tool to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the input: an object schema.
    pub input_schema: Value,
    /// True when it never changes the workspace.
    #[serde(default)]
    pub read_only: bool,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what was asked.
    Ok,
    /// It refused or failed; the content says what to try.
    Error,
    /// It was cut; whether it took effect is not known.
    Interrupted,
}

/// What the model reads of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// How it ended.
    pub status: ToolStatus,
    /// The text for the model.
    pub content: String,
    /// True when files changed, so that a snapshot is due.
    #[serde(default)]
    pub changed: bool,
    /// The branch after the call, when there is one.
    #[serde(default)]
    pub branch: Option<String>,
    /// The head commit of that branch.
    #[serde(default)]
    pub head: Option<crate::CommitId>,
    /// How long it took at the executor.
    #[serde(default)]
    pub duration_ms: u64,
    /// Exit code of the command that it ran to its end, 128 + signal when a signal ended it; absent for other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True when the content is only a part of what there was to tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The workspace's files after the call, so that what it showed is bound to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<crate::TreeId>,
}

impl ToolResult {
    /// A refusal in words for the model.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            ..Self::ok(content)
        }
    }

    /// A success that changed nothing in the workspace.
    pub fn ok(content: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Ok,
            content: content.into(),
            changed: false,
            branch: None,
            head: None,
            duration_ms: 0,
            exit_code: None,
            truncated: false,
            tree: None,
        }
    }
}
