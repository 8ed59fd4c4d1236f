//! The plan of a large change.

use serde::{Deserialize, Serialize};

/// How a change will be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What is true afterwards.
    pub goal: String,
    /// The way, and why this one.
    pub approach: String,
    /// What is done, in order.
    pub steps: Vec<PlanStep>,
    /// What will be tested, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// What may go wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// What a reader may expect and will not be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_doing: Vec<String>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is done.
    pub what: String,
    /// Files that it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// An issue as it was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedIssue {
    /// One line by the model.
    pub title: String,
    /// Markdown by the model.
    pub text: String,
    /// What has to be done, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checklist: Vec<String>,
}
