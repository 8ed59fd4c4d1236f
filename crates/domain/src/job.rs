//! Jobs: the kinds of work that a trigger requests.

use serde::{Deserialize, Serialize};

use crate::{Lane, RepositoryName};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Writes the change that a ticket requests and opens a draft pull request.
    Implement,
    /// Sets labels and fields of a new ticket.
    Triage,
    /// Answers a question in a comment.
    Answer,
    /// Performs a task in a discussion: research, summary, planning of issues, or closing.
    Discuss,
    /// Reacts to failed checks of our pull request.
    FixCi,
    /// Reacts to a review of our pull request.
    AddressReview,
    /// Reviews a pull request of another author.
    Review,
    /// Marks a draft with passed checks as ready for its reviewers.
    MarkReady,
    /// Closes the ticket of a merged pull request.
    Finish,
    /// Converts a pull request to a draft after a person pushed to it.
    BackToDraft,
    /// Follows our pull request after a person reopened it.
    Reopen,
    /// Describes the writes of another job without a model, a workspace or outbound writes.
    Rehearse,
    /// Reminds reviewers of a pending review of our pull request.
    Remind,
}

impl Job {
    /// All jobs, in the order of their declaration.
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

    /// Returns the lane in which the job waits, for a job about this repository.
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
