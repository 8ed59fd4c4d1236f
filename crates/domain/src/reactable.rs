//! What a reaction is put on.

use serde::{Deserialize, Serialize};

use crate::RepositoryName;

/// What a person wrote on GitHub that can be reacted to. Jira has no reactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reactable {
    /// An issue or a pull request itself.
    Issue {
        /// Its repository.
        repository: RepositoryName,
        /// Its number.
        number: u64,
    },
    /// A comment on an issue or a pull request.
    Comment {
        /// Its repository.
        repository: RepositoryName,
        /// The comment's id.
        id: u64,
    },
    /// A comment of a review on a line.
    LineComment {
        /// Its repository.
        repository: RepositoryName,
        /// The comment's id.
        id: u64,
    },
    /// A discussion, or a comment in one.
    Discussion {
        /// Its repository.
        repository: RepositoryName,
        /// The discussion's number.
        number: u64,
        /// The comment's id in GraphQL; absent: the discussion itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
}

impl Reactable {
    /// An issue or a pull request itself.
    pub fn issue(repository: &RepositoryName, number: u64) -> Self {
        Self::Issue {
            repository: repository.clone(),
            number,
        }
    }

    /// A discussion itself.
    pub fn discussion(repository: &RepositoryName, number: u64) -> Self {
        Self::Discussion {
            repository: repository.clone(),
            number,
            comment: None,
        }
    }

    /// Where it is.
    pub const fn repository(&self) -> &RepositoryName {
        match self {
            Self::Issue { repository, .. }
            | Self::Comment { repository, .. }
            | Self::LineComment { repository, .. }
            | Self::Discussion { repository, .. } => repository,
        }
    }

    /// Whether it is one remark of many, and not what all of them are about.
    pub const fn is_comment(&self) -> bool {
        match self {
            Self::Comment { .. } | Self::LineComment { .. } => true,
            Self::Issue { .. } => false,
            Self::Discussion { comment, .. } => comment.is_some(),
        }
    }
}

/// The reactions that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// It was seen and is worked on.
    Eyes,
    /// What was asked for is done.
    Rocket,
}

impl Reaction {
    /// GitHub's name of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eyes => "eyes",
            Self::Rocket => "rocket",
        }
    }
}
