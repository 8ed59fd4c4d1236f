//! The parts of a run that have a conversation with the model.

use serde::{Deserialize, Serialize};

/// What a conversation with the model is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The change is made in the workspace.
    #[default]
    Work,
    /// Labels are chosen for a new ticket.
    Triage,
    /// A ticket is looked at before anybody works on it.
    Intake,
    /// A large change is planned.
    Plan,
    /// A change is looked at by a second model.
    Review,
    /// A question is answered.
    Answer,
    /// A discussion is researched, summed up, planned or closed.
    Discuss,
    /// A pull request of somebody is reviewed.
    PullRequest,
}

impl Phase {
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

/// Which of the configured models is asked.
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
