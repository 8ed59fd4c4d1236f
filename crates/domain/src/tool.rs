//! Tools as the model sees them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Description of a tool for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// Description of its effect and its use.
    pub description: String,
    /// JSON Schema of the input: an object schema.
    pub input_schema: Value,
    /// True when it never changes the workspace.
    #[serde(default)]
    pub read_only: bool,
}

/// Outcome of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The tool succeeded.
    Ok,
    /// The tool refused or failed; the content explains the next step.
    Error,
    /// The call was interrupted; its effect is unknown.
    Interrupted,
}

/// Result of a tool call for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Outcome of the call.
    pub status: ToolStatus,
    /// The text for the model.
    pub content: String,
    /// True when files changed, so that a snapshot is necessary.
    #[serde(default)]
    pub changed: bool,
    /// The branch after the call, if any.
    #[serde(default)]
    pub branch: Option<String>,
    /// The head commit of that branch.
    #[serde(default)]
    pub head: Option<crate::CommitId>,
    /// Run time on the executor in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Exit code of the completed command, 128 + signal after a signal; absent for other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True when the content is incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    // Evidence is only valid for the files that a check saw.
    /// Tree of the workspace's files after the call, which binds the result to these files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<crate::TreeId>,
}

impl ToolResult {
    /// Creates an error with a text for the model.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            ..Self::ok(content)
        }
    }

    /// Creates a success that changed nothing in the workspace.
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
