//! The plan of a large change.

use serde::{Deserialize, Serialize};

/// Plan of a change, written by the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePlan {
    /// The state after the change.
    pub goal: String,
    /// The approach with its reason.
    pub approach: String,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// Planned tests with their methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Risks of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Work that a reader may expect and that the plan excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_doing: Vec<String>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Description of the step.
    pub what: String,
    /// Files that the step touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A planned issue of a discussion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedIssue {
    /// Title in one line, written by the model.
    pub title: String,
    /// Description as Markdown, written by the model.
    pub text: String,
    /// Tasks of the issue, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checklist: Vec<String>,
}
