//! Tickets as their trackers have them.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::RunView;

/// Which tickets to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TicketsQuery {
    /// Only in this status: one of Jira's, or `open` or `closed` at GitHub; those that are not over unless given.
    pub status: Option<String>,
    /// Only of this repository's project and issues.
    pub repository: Option<String>,
}

/// Tickets of the projects and repositories that the rules name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketsView {
    /// At most 50 of each project and repository, the latest change first.
    pub tickets: Vec<TicketLine>,
    /// What could not be listed.
    pub problems: Vec<ListProblem>,
}

/// A ticket in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketLine {
    /// Its key, e.g. `jira:ENG-12`.
    pub ticket: String,
    /// The repository that work on it would go to.
    pub repository: String,
    /// Its status at the tracker.
    pub status: String,
    /// Its one-line title, without what a page does not show.
    pub summary: String,
    /// Whether it asks for work: by its status, or by what it is assigned to or labeled with.
    pub asks: bool,
    /// Its last run that is known.
    pub run: Option<RunView>,
}

/// A project or repository whose tickets could not be listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListProblem {
    /// Which.
    pub repository: String,
    /// Why.
    pub problem: String,
}

/// What a ticket says now. Texts are cleaned as they are for a run: without what a page does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketTextView {
    /// Its key.
    pub ticket: String,
    /// Its page; empty for a ticket of a folder.
    pub url: String,
    /// Its status at the tracker; empty for a ticket of a folder.
    pub status: String,
    /// Its kind, as the tracker has it; may be empty.
    pub kind: String,
    /// Its priority; may be empty.
    pub priority: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who it is assigned to, as people know them.
    pub assignees: Vec<String>,
    /// One line.
    pub summary: String,
    /// Markdown.
    pub description: String,
    /// Comments of people, oldest first; none of a pull request.
    pub comments: Vec<CommentView>,
}

/// A comment on a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommentView {
    /// Who wrote it, as people know them.
    pub author: String,
    /// When.
    pub at: String,
    /// Markdown.
    pub text: String,
}
