//! Lanes: which jobs of one ticket wait for each other.

use serde::{Deserialize, Serialize};

use crate::RepositoryName;

/// Where a job waits for its turn. Within a lane one run works at a time; lanes work side by side. A run that is parked
/// leaves its lane to others, but in a lane of changes its branch stays its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Lane {
    /// Work on branches of one repository.
    Change {
        /// The repository.
        repository: RepositoryName,
    },
    /// Answers to people.
    Talk,
    /// Judging what is there: a newer request of the same kind replaces an older one.
    Review,
    /// What must complete whatever else happens, such as closing the ticket of a merged pull request.
    Upkeep,
}

impl Lane {
    /// True when a newer request of the same kind replaces a live run instead of waiting for it.
    pub const fn replaces(&self) -> bool {
        matches!(self, Self::Review)
    }

    /// True when a request to stop the ticket's work does not end the lane's runs.
    pub const fn must_complete(&self) -> bool {
        matches!(self, Self::Upkeep)
    }

    /// True when live runs of the lane take news about their ticket in as input.
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
