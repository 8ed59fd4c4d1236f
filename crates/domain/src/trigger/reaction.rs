//! Reactions: their kinds, and the texts on GitHub that accept them.

use serde::{Deserialize, Serialize};

use crate::identity::repository::RepositoryName;

/// Text on GitHub that accepts reactions. Jira has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReactionSubject {
    /// An issue or a pull request itself.
    Issue {
        /// Repository of the issue or pull request.
        repository: RepositoryName,
        /// Its number in the repository.
        number: u64,
    },
    /// A comment on an issue or a pull request.
    Comment {
        /// Repository of the issue or pull request.
        repository: RepositoryName,
        /// The comment's id.
        id: u64,
    },
    /// A comment of a review on a line.
    LineComment {
        /// Repository of the pull request.
        repository: RepositoryName,
        /// The comment's id.
        id: u64,
    },
    /// A discussion, or a comment in one.
    Discussion {
        /// Repository of the discussion.
        repository: RepositoryName,
        /// The discussion's number.
        number: u64,
        /// The comment's node id in GraphQL; absent: the discussion itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
}

impl ReactionSubject {
    /// Returns an issue or a pull request as target.
    pub fn issue(repository: &RepositoryName, number: u64) -> Self {
        Self::Issue {
            repository: repository.clone(),
            number,
        }
    }

    /// Returns a discussion as target.
    pub fn discussion(repository: &RepositoryName, number: u64) -> Self {
        Self::Discussion {
            repository: repository.clone(),
            number,
            comment: None,
        }
    }

    /// The repository of the target.
    pub const fn repository(&self) -> &RepositoryName {
        match self {
            Self::Issue { repository, .. }
            | Self::Comment { repository, .. }
            | Self::LineComment { repository, .. }
            | Self::Discussion { repository, .. } => repository,
        }
    }

    /// Returns true for a single comment, false for an issue, pull request or discussion as a whole.
    pub const fn is_comment(&self) -> bool {
        match self {
            Self::Comment { .. } | Self::LineComment { .. } => true,
            Self::Issue { .. } => false,
            Self::Discussion { comment, .. } => comment.is_some(),
        }
    }
}

/// The reactions that Journeyman uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactionKind {
    /// Journeyman read the text and works on it.
    Eyes,
    /// The requested work is done.
    Rocket,
}

impl ReactionKind {
    /// The name in GitHub's API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eyes => "eyes",
            Self::Rocket => "rocket",
        }
    }
}
