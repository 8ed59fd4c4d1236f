//! Answers about tickets of trackers, and the query for lists.

use domain::Dollars;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{PullRequestLine, RunView};

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

/// Filter for the tickets with runs. All given conditions must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TicketSummariesQuery {
    /// Only tickets of work in this repository, e.g. `acme/shop`.
    pub repository: Option<String>,
    /// Only tickets in this state.
    #[param(value_type = Option<String>)]
    pub standing: Option<TicketStanding>,
    /// Only tickets with all of these words in their key, title, repository, person or pull request.
    pub search: Option<String>,
    /// Only tickets whose last run was requested before this run: `last_run` of the previous page's last
    /// ticket.
    pub before: Option<String>,
    /// Maximum number of tickets, most recently requested first; 100 by default, at most 1,000.
    pub limit: Option<usize>,
}

/// State of the work on a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TicketStanding {
    /// A run waits for a person, or the ticket is quarantined.
    NeedsPerson,
    /// A run works or waits for something else.
    Working,
    /// The last run failed.
    Failed,
    /// A pull request is open.
    Open,
    /// A pull request was merged, and none is open.
    Merged,
    /// Its pull requests were closed without a merge.
    Closed,
    /// The work ended without a pull request.
    Done,
}

impl TicketStanding {
    /// All states, those first that need attention.
    pub const ALL: [Self; 7] = [
        Self::NeedsPerson,
        Self::Failed,
        Self::Working,
        Self::Open,
        Self::Merged,
        Self::Closed,
        Self::Done,
    ];

    /// The spelling in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A ticket with the sums of its runs, without a request to its tracker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketSummary {
    /// Its key, e.g. `jira:ENG-12`.
    pub ticket: String,
    /// Its title at the time of the last request with one; may be empty. Text by others.
    pub title: String,
    /// Repository of the work; absent: none is needed, or it is unknown.
    pub repository: Option<String>,
    /// State of the work.
    pub standing: TicketStanding,
    /// Its last run.
    pub last_run: RunView,
    /// Number of its known runs.
    pub runs: u64,
    /// Its pull requests.
    pub pull_requests: Vec<PullRequestLine>,
    /// Cost of the models of its runs, in dollars; replies without a known price count as 0.
    #[schema(value_type = f64)]
    pub cost_usd: Dollars,
    /// Number of replies without a known price.
    pub unpriced: u64,
    /// Last known strength of the evidence for its change, `E0` to `E3`.
    pub evidence: Option<String>,
    /// The user who requested the work first.
    pub actor: Option<String>,
    /// Time of the first known request.
    pub started_at: String,
    /// Time at which its last run ended; absent: a run is live.
    pub finished_at: Option<String>,
    /// Reason for its quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
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
