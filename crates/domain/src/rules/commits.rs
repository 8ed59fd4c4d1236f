//! Commits: how their messages read, and who is named in them.

use serde::{Deserialize, Serialize};

/// More names are no help to a reader.
const MAX_CO_AUTHORS: usize = 5;
/// Longest name with its address, in characters.
const MAX_AUTHOR: usize = 200;

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
    /// Who is named as an author beside us, each `Name <address>`; at most 5.
    pub co_authors: Vec<String>,
    /// Whether our commits are signed off (Developer Certificate of Origin).
    pub sign_off: bool,
}

impl CommitRules {
    pub(super) fn has_legal_authors(&self) -> bool {
        self.co_authors.len() <= MAX_CO_AUTHORS && self.co_authors.iter().all(|who| is_author(who))
    }
}

/// `Name <address>` on one line.
fn is_author(who: &str) -> bool {
    let parts = who.trim().strip_suffix('>').and_then(|who| who.split_once(" <"));
    let is_plain = |text: &str| {
        !text.trim().is_empty() && !text.contains(['<', '>']) && !text.contains(char::is_control)
    };
    who.chars().count() <= MAX_AUTHOR
        && parts.is_some_and(|(name, address)| {
            is_plain(name)
                && is_plain(address)
                && address.contains('@')
                && !address.contains(char::is_whitespace)
        })
}

impl Default for CommitRules {
    fn default() -> Self {
        Self {
            style: CommitStyle::Conventional,
            scope_required: false,
            ticket_in_message: true,
            co_authors: Vec::new(),
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
