//! Reasons for which a request is skipped.

mod words;

use serde::{Deserialize, Serialize};

pub use words::TextMarkup;

use crate::{
    health::state::HealthCause, identity::time::Timestamp, rules::jira::JiraField,
    trigger::pull_request::PullRequestRef,
};

/// Location of a skip phrase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum SkipPlace {
    /// In the summary of the ticket.
    Summary,
    /// In the description of the ticket.
    Description,
    /// In a comment on the ticket.
    Comment {
        /// Display name of the author; at most 100 characters.
        author: String,
    },
}

/// A repository with the properties that a ticket needs for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChoice {
    /// Name of the repository.
    pub repository: String,
    /// Components of Jira, one of which is sufficient.
    pub components: Vec<String>,
    /// Labels, one of which is sufficient.
    pub labels: Vec<String>,
    /// A field with values, one of which is sufficient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<JiraField>,
}

/// Reason for which Journeyman starts no work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum SkipReason {
    /// The ticket's text or a comment contains the skip phrase.
    Phrase {
        /// The phrase, e.g. `[AGENT-SKIP]`.
        phrase: String,
        /// Location of the phrase.
        place: SkipPlace,
    },
    /// The ticket has a skip label.
    Label {
        /// Name of the label.
        label: String,
    },
    /// A pull request for the ticket exists already, ours or another author's.
    PullRequestExists {
        /// URL of the pull request.
        url: String,
        /// Name of its author.
        author: String,
    },
    /// The user who requested the work is not allowed to.
    NotAllowed {
        /// Display name of the user.
        actor: String,
        /// The required Jira group; empty: none is configured.
        group: String,
        /// The project role that is sufficient as well; empty: none is configured. Without a group and a
        /// role, no user is allowed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        role: String,
    },
    /// The user who requested work on a GitHub issue has no write permission in the repository.
    NoWritePermission {
        /// Login of the user.
        actor: String,
    },
    /// A program requested the work, and the rules do not list it.
    Bot {
        /// Display name of the program.
        actor: String,
    },
    /// A user without the permission to ask mentioned Journeyman.
    MayNotAsk {
        /// Display name of the user.
        actor: String,
        /// The required Jira group; empty: none is configured, or the ticket is on GitHub.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        group: String,
        /// Our pull request with the mention; absent: it was on the ticket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<PullRequestRef>,
    },
    /// The ticket had already left the requesting status when the move was processed.
    StatusLeft {
        /// The status that requests work.
        wanted: String,
        /// The current status of the ticket.
        status: String,
    },
    /// A user without the permission to request work changed the ticket's text after the request.
    TextChanged {
        /// Display name of the user.
        by: String,
    },
    /// A decision in a comment does not name its subject, and several are possible.
    UnclearDecision {
        /// The commits and plans that wait for a decision, abbreviated.
        heads: Vec<String>,
    },
    // Work in the wrong repository costs more than a question. A model never chooses the repository, because
    // it would choose the rules and permissions with it.
    /// Several repositories share the ticket's project, and its components and labels match none or several
    /// of them.
    UnclearRepository {
        /// The possible repositories with their properties.
        choices: Vec<RepositoryChoice>,
    },
    /// A plan of issues was requested, and the rules permit no issues.
    NoIssues,
    /// Checks of our pull request do not complete. Journeyman posts this once per head.
    ChecksWait {
        /// The pull request with the checks.
        pull_request: PullRequestRef,
        /// The names of the incomplete checks; at most 20.
        checks: Vec<String>,
        /// True when a maintainer has to approve the workflow runs.
        needs_approval: bool,
        /// URL of the page for the next step; empty: unknown.
        page: String,
    },
    /// Our pull request cannot be merged before a person acts. Journeyman posts this once per head and cause.
    MergeWaits {
        /// The pull request that cannot be merged.
        pull_request: PullRequestRef,
        /// The reason against the merge.
        cause: HealthCause,
        /// Name of the base branch.
        base_branch: String,
        /// First time at which the reason was seen.
        since: Timestamp,
    },
    /// The tracker's answer about the ticket is unreadable.
    Unreadable,
}
