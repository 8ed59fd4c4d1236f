//! Tools as the model sees them: their results, the live output for viewers and the hints of the planner.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    budget::run_limits::RunLimits,
    identity::{
        commit::{CommitId, TreeId},
        ids::CallId,
    },
};

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
    pub head: Option<CommitId>,
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
    pub tree: Option<TreeId>,
}

impl ToolResult {
    /// Creates an error with a text for the model.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            ..Self::ok(content)
        }
    }

    /// Creates the result of a call whose effect is unknown, with a text for the model.
    pub fn interrupted(content: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Interrupted,
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

/// Output of a running tool since the previous piece.
// The message goes over a subject without a stream, so the planner never waits for a viewer. The journal
// contains the complete result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveOutput {
    /// Id of the tool call.
    pub call: CallId,
    /// The output text, with the line ends and control characters of the command.
    pub text: String,
}

/// A hint of the planner for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelHint {
    /// The model repeats its calls without new results.
    Repeating(TurnRepetition),
    /// The run has used a large part of a limit.
    Budget {
        /// Used part in percent: 50, 80 or 95. After 95 the planner accepts only the tools that end the work.
        used: u8,
        /// Number of remaining turns.
        turns: u32,
        /// Remaining amounts of the other limits.
        left: RunLimits,
    },
}

impl ModelHint {
    /// The name in listings.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Repeating(_) => "repeating",
            Self::Budget { .. } => "budget",
        }
    }
}

/// A sequence of similar turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRepetition {
    /// Kind of the similarity.
    pub kind: RepetitionKind,
    /// Number of similar turns.
    pub turns: u32,
    /// The called tools, each once, by the names that the model wrote, truncated.
    pub tools: Vec<String>,
}

/// Kind of similarity between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepetitionKind {
    /// The same calls with the same results, while the files did not change.
    Same,
    /// Two alternating turns: the same calls with the same results, and the files return to an earlier state.
    Alternating,
    /// Calls that no tool could parse.
    Malformed,
    /// Replies that reached the model's token limit without a tool call.
    Truncated,
    /// The conversation needs another summary although no file changed since the last one.
    Summaries,
}
