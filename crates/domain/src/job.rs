//! Jobs: the kinds of work that a trigger asks for.

use serde::{Deserialize, Serialize};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Write the change that a ticket asks for and open a draft pull request.
    Implement,
    /// Label a new ticket.
    Triage,
    /// Answer a question in a comment.
    Answer,
    /// React to red CI on a pull request of ours.
    FixCi,
    /// React to a review of a pull request of ours.
    AddressReview,
    /// Review a pull request.
    Review,
    /// Hand a green draft over to its reviewers.
    MarkReady,
    /// Close the ticket of a merged pull request.
    Finish,
}

/// What happens when a job is asked for while one of the same ticket runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Wait for the earlier ones, in order.
    Queue,
    /// Cancel the running one of the same kind and start.
    CancelRunning,
    /// Start beside whatever runs; it must complete.
    Beside,
}

impl Job {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Implement,
        Self::Triage,
        Self::Answer,
        Self::FixCi,
        Self::AddressReview,
        Self::Review,
        Self::MarkReady,
        Self::Finish,
    ];

    /// How a new request of this kind meets a running one.
    pub const fn admission(self) -> Admission {
        match self {
            Self::Implement | Self::FixCi | Self::AddressReview | Self::Answer => Admission::Queue,
            Self::Triage | Self::Review => Admission::CancelRunning,
            Self::MarkReady | Self::Finish => Admission::Beside,
        }
    }

    /// The name in settings, the API and journals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Triage => "triage",
            Self::Answer => "answer",
            Self::FixCi => "fix_ci",
            Self::AddressReview => "address_review",
            Self::Review => "review",
            Self::MarkReady => "mark_ready",
            Self::Finish => "finish",
        }
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
