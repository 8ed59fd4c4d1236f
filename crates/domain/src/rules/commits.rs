//! Rules for commits: messages, authors and co-authors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{identity::author::CommitAuthor, journal::record_format::is_true};

// Maximum number of co-authors: a longer list does not help a reader.
const MAX_CO_AUTHORS: usize = 5;
// Maximum number of linked accounts: every run keeps a copy of its rules.
const MAX_REQUESTERS: usize = 200;

/// Rules for commit messages and authors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitRules {
    /// Style of the subject.
    pub style: CommitStyle,
    /// True when a conventional commit must name its scope.
    pub scope_required: bool,
    /// True when the message must contain the ticket's key.
    pub ticket_in_message: bool,
    /// Author and committer of our commits; absent: those of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<CommitAuthor>,
    /// Co-authors of our commits, each `Name <address>`; at most 5.
    pub co_authors: Vec<String>,
    /// True when the person who requested the work becomes a co-author, if an address is known.
    #[serde(skip_serializing_if = "is_true")]
    pub co_author_requester: bool,
    /// Authors by the accounts of Jira that they have: account ids of the Cloud, names of a Data Center; at most 200.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requesters: BTreeMap<String, CommitAuthor>,
    /// True when our commits are signed off (Developer Certificate of Origin).
    pub sign_off: bool,
}

impl CommitRules {
    pub(super) fn has_legal_authors(&self) -> bool {
        let is_author = |who: &String| who.parse::<CommitAuthor>().is_ok();
        self.co_authors.len() <= MAX_CO_AUTHORS && self.co_authors.iter().all(is_author)
    }

    pub(super) fn has_legal_requesters(&self) -> bool {
        self.requesters.len() <= MAX_REQUESTERS && self.requesters.keys().all(|id| !id.trim().is_empty())
    }

    /// Author and committer of our commits.
    pub fn author(&self) -> CommitAuthor {
        self.author.clone().unwrap_or_default()
    }
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
            requesters: BTreeMap::new(),
            sign_off: false,
        }
    }
}

/// Style of a commit subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitStyle {
    /// `type(scope): description`, by the Conventional Commits specification.
    Conventional,
    /// Any sentence without a prefix.
    Plain,
}
