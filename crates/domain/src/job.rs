//! Jobs: the kinds of work that a trigger asks for.

use serde::{Deserialize, Serialize};

use crate::{Lane, RepositoryName};

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
    /// Take part in a discussion: research it, sum it up, plan issues of it, or close it.
    Discuss,
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
    /// Take a pull request back to draft that a person pushed to.
    BackToDraft,
    /// Follow a pull request of ours that a person opened again.
    Reopen,
    /// Tell what another job would write, without model, workspace and outside writes.
    Rehearse,
    /// Remind people of a review that a pull request of ours waits for.
    Remind,
}

impl Job {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Implement,
        Self::Triage,
        Self::Answer,
        Self::Discuss,
        Self::FixCi,
        Self::AddressReview,
        Self::Review,
        Self::MarkReady,
        Self::Finish,
        Self::BackToDraft,
        Self::Reopen,
        Self::Rehearse,
        Self::Remind,
    ];

    /// Where the job waits for its turn, when it is about this repository.
    pub fn lane(self, repository: &RepositoryName) -> Lane {
        match self {
            Self::Implement | Self::FixCi | Self::AddressReview => Lane::Change {
                repository: repository.clone(),
            },
            Self::Answer | Self::Discuss => Lane::Talk,
            Self::Triage | Self::Review | Self::Rehearse => Lane::Review,
            Self::MarkReady | Self::Finish | Self::BackToDraft | Self::Reopen | Self::Remind => Lane::Upkeep,
        }
    }

    /// The name in settings, the API and journals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Triage => "triage",
            Self::Answer => "answer",
            Self::Discuss => "discuss",
            Self::FixCi => "fix_ci",
            Self::AddressReview => "address_review",
            Self::Review => "review",
            Self::MarkReady => "mark_ready",
            Self::Finish => "finish",
            Self::BackToDraft => "back_to_draft",
            Self::Reopen => "reopen",
            Self::Rehearse => "rehearse",
            Self::Remind => "remind",
        }
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
