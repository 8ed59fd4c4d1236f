//! Phases of a run that have a conversation with the model.

use serde::{Deserialize, Serialize};

/// Purpose of a conversation with the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The model makes the change in the workspace.
    #[default]
    Work,
    /// The model chooses labels for a new ticket.
    Triage,
    /// The model assesses a ticket before the work begins.
    Intake,
    /// The model plans a large change.
    Plan,
    /// A second model reviews the change.
    Review,
    /// The model answers a question.
    Answer,
    /// The model researches, summarizes, plans or closes a discussion.
    Discuss,
    /// The model reviews a pull request of another author.
    PullRequest,
}

impl RunPhase {
    /// The name in journals, prompts and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Triage => "triage",
            Self::Intake => "intake",
            Self::Plan => "plan",
            Self::Review => "review",
            Self::Answer => "answer",
            Self::Discuss => "discuss",
            Self::PullRequest => "pull_request",
        }
    }
}

/// Role that selects one of the configured models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// The model that does the work.
    #[default]
    Default,
    /// A small model for short questions.
    Fast,
    /// A model that judges the work of the default one.
    Reviewer,
}
