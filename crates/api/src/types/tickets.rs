//! Answers about tickets of trackers, and the query for lists.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::RunView;

/// Filter for a list of tickets.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TicketsQuery {
    /// Only tickets in this status: one of Jira's, or `open` or `closed` on GitHub; unfinished tickets by
    /// default.
    pub status: Option<String>,
    /// Only tickets of this repository's project and issues.
    pub repository: Option<String>,
    /// Tickets in any status that changed within so many days, 1 to 31; not together with `status`.
    #[serde(default)]
    pub days: Option<u32>,
}

/// Tickets of the projects and repositories in the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketsView {
    /// At most 50 tickets per project and repository, with `days` at most 100; the latest change first.
    pub tickets: Vec<TicketLine>,
    /// Projects and repositories that could not be listed.
    pub problems: Vec<ListProblem>,
}

/// A ticket in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketLine {
    /// Its key, e.g. `jira:ENG-12`.
    pub ticket: String,
    /// The repository that receives work on it.
    pub repository: String,
    /// Its status at the tracker.
    pub status: String,
    /// Its title on one line, without text that the tracker's page hides.
    pub summary: String,
    /// True when it requests work by its status, its assignee or a label.
    pub asks: bool,
    /// Its last known run.
    pub run: Option<RunView>,
}

/// A project or repository whose tickets could not be listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListProblem {
    /// Name of the repository.
    pub repository: String,
    /// Reason of the failure.
    pub problem: String,
}

/// Current text of a ticket. Like for a run, text that the tracker's page hides is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketTextView {
    /// Key of the ticket.
    pub ticket: String,
    /// URL of its page; empty for a folder ticket.
    pub url: String,
    /// Its status at the tracker; empty for a folder ticket.
    pub status: String,
    /// Its type in the tracker; may be empty.
    pub kind: String,
    /// Its priority; may be empty.
    pub priority: String,
    /// Labels of the ticket.
    pub labels: Vec<String>,
    /// Display names of its assignees.
    pub assignees: Vec<String>,
    /// The title on one line.
    pub summary: String,
    /// The description as Markdown.
    pub description: String,
    /// Comments of people, oldest first; empty for a pull request.
    pub comments: Vec<CommentView>,
}

/// A comment on a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommentView {
    /// Display name of the author.
    pub author: String,
    /// Time of the comment.
    pub at: String,
    /// The comment as Markdown.
    pub text: String,
}
