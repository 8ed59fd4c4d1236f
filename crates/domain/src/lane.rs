//! Lanes: queues of one ticket whose jobs wait for each other.

use serde::{Deserialize, Serialize};

use crate::RepositoryName;

/// Queue in which a job of a ticket waits. One run at a time works in a lane, and lanes work in parallel.
///
/// A parked run frees its lane for other runs, but in a change lane it keeps its branch.
// Lanes keep short work, such as an answer, from waiting for a long change of the same ticket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Lane {
    /// Work on branches of one repository.
    Change {
        /// The repository that contains the branches.
        repository: RepositoryName,
    },
    /// Answers and comments for people.
    Talk,
    /// Assessments of the current state: a newer request of the same kind replaces an older one.
    Review,
    /// Work that must complete in any case, such as closing the ticket of a merged pull request.
    Upkeep,
}

impl Lane {
    /// True when a newer request of the same kind replaces an active run instead of waiting for it.
    pub const fn replaces(&self) -> bool {
        matches!(self, Self::Review)
    }

    /// True when a request to stop the ticket's work does not end the runs of the lane.
    pub const fn must_complete(&self) -> bool {
        matches!(self, Self::Upkeep)
    }

    /// True when active runs of the lane accept news about their ticket as input.
    pub const fn hears_news(&self) -> bool {
        matches!(self, Self::Change { .. } | Self::Talk)
    }

    /// The name in logs and spans.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Change { .. } => "change",
            Self::Talk => "talk",
            Self::Review => "review",
            Self::Upkeep => "upkeep",
        }
    }
}
