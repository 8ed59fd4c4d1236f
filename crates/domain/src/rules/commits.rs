//! Commits: how their messages read, and who is named in them.

use serde::{Deserialize, Serialize};

use crate::CommitAuthor;

/// More names are no help to a reader.
const MAX_CO_AUTHORS: usize = 5;

/// Commit messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitRules {
    /// How the first line reads.
    pub style: CommitStyle,
    /// A conventional commit must name its scope.
    pub scope_required: bool,
    /// The message must contain the ticket's key.
    pub ticket_in_message: bool,
    /// Author and committer of our commits; absent: that of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<CommitAuthor>,
    /// Who is named as an author beside us, each `Name <address>`; at most 5.
    pub co_authors: Vec<String>,
    /// True when the person who asked for the work is named as a co-author, where a GitHub account is known.
    #[serde(skip_serializing_if = "is_set")]
    pub co_author_requester: bool,
    /// Whether our commits are signed off (Developer Certificate of Origin).
    pub sign_off: bool,
}

impl CommitRules {
    pub(super) fn has_legal_authors(&self) -> bool {
        let is_author = |who: &String| who.parse::<CommitAuthor>().is_ok();
        self.co_authors.len() <= MAX_CO_AUTHORS && self.co_authors.iter().all(is_author)
    }

    /// Author and committer of our commits.
    pub fn author(&self) -> CommitAuthor {
        self.author.clone().unwrap_or_default()
    }
}

/// Records of earlier releases are written again as they were.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
const fn is_set(flag: &bool) -> bool {
    *flag
}

impl Default for CommitRules {
    fn default() -> Self {
        Self {
            style: CommitStyle::Conventional,
            scope_required: false,
            ticket_in_message: true,
            author: None,
            co_authors: Vec::new(),
            co_author_requester: true,
            sign_off: false,
        }
    }
}

/// How the first line of a commit message reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitStyle {
    /// `type(scope): description`, by the Conventional Commits specification.
    Conventional,
    /// Any sentence.
    Plain,
}

impl CommitStyle {
    /// The name in the rules and for the model.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conventional => "conventional",
            Self::Plain => "plain",
        }
    }
}
