//! Why a request is skipped.

mod words;

use serde::{Deserialize, Serialize};

pub use words::Marks;

use crate::JiraField;

/// Where a skip phrase stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum SkipPlace {
    /// In the ticket's summary.
    Summary,
    /// In its description.
    Description,
    /// In a comment.
    Comment {
        /// As people know them; at most 100 characters.
        author: String,
    },
}

/// A repository, and what a ticket has to have for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChoice {
    /// Its name.
    pub repository: String,
    /// One of these components of Jira,
    pub components: Vec<String>,
    /// or one of these labels,
    pub labels: Vec<String>,
    /// or one of these values of a field of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<JiraField>,
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum SkipReason {
    /// The skip phrase stands in the ticket's text or in a comment.
    Phrase {
        /// The phrase, e.g. `[AGENT-SKIP]`.
        phrase: String,
        /// Where.
        place: SkipPlace,
    },
    /// The ticket has a skip label.
    Label {
        /// The label.
        label: String,
    },
    /// A pull request for the ticket exists already, ours or a person's.
    PullRequestExists {
        /// Link for people.
        url: String,
        /// Its author.
        author: String,
    },
    /// Who asked for the work may not.
    NotAllowed {
        /// As people know them.
        actor: String,
        /// The group that one has to be in; empty when none is configured.
        group: String,
        /// The role of the project that does as well; empty when none is configured. Without both nobody may.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        role: String,
    },
    /// Who asked for the work on an issue of GitHub may not write to the repository.
    NoWritePermission {
        /// Their login.
        actor: String,
    },
    /// A program asked for the work, and the rules do not name it.
    Bot {
        /// As people know it.
        actor: String,
    },
    /// Somebody mentioned us who may not ask for anything.
    MayNotAsk {
        /// As people know them.
        actor: String,
        /// At Jira the group that one has to be in; empty when none is configured, or at GitHub.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        group: String,
        /// Our pull request that it was said on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<crate::PullRequestRef>,
    },
    /// The ticket had left the status that asks for work when that was told.
    StatusLeft {
        /// The status that asks for work.
        wanted: String,
        /// The status that the ticket has.
        status: String,
    },
    /// Somebody who may not ask for work changed the ticket's text after work was asked for.
    TextChanged {
        /// As people know them.
        by: String,
    },
    /// Somebody decided in a comment, and it is not clear about what.
    UnclearDecision {
        /// The commits and plans that wait for a decision, abbreviated.
        heads: Vec<String>,
    },
    /// Several repositories share the ticket's project, and its components and labels do not say which one is meant.
    UnclearRepository {
        /// What each of them goes by.
        choices: Vec<RepositoryChoice>,
    },
    /// A plan was asked for, and the rules let us open no issues.
    NoIssues,
    /// Checks of our pull request do not end: people are told once for each head.
    ChecksWait {
        /// The pull request.
        pull_request: crate::PullRequestRef,
        /// The names of what has not ended; at most 20.
        checks: Vec<String>,
        /// A maintainer has to let workflow runs begin.
        needs_approval: bool,
        /// Where people can see to it; empty: nowhere that is known.
        page: String,
    },
    /// The tracker's answer about the ticket cannot be read.
    Unreadable,
}
