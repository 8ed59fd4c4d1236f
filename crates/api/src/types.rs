//! What the API takes and gives, as JSON. Instants are RFC 3339 in UTC.

mod credentials;
mod jobs;
mod pools;
mod pull_requests;
mod runs;
mod standing;
mod tickets;

use domain::{Dollars, PullRequestRef, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

pub use self::{
    credentials::CredentialView,
    jobs::{ContextBody, JobAccepted, JobBody, JobPlanned, JobStarted, TextBody},
    pools::{ExecutorView, MakeView, PoolView, PoolsView},
    pull_requests::{CallState, PullRequestBody, PullRequestCallView},
    runs::{OverviewView, RunState, RunView, RunsQuery},
    standing::{ChecksView, FailedCheckView, PullRequestView, ReviewView},
    tickets::{CommentView, ListProblem, TicketLine, TicketTextView, TicketsQuery, TicketsView},
};

/// What a bearer may do; each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read.
    Viewer,
    /// Dispatch, decide and stop.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemView {
    /// A stable name of the condition, e.g. `not_found`.
    pub error: String,
    /// In words.
    pub detail: String,
}

/// Where to start reading a journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JournalQuery {
    /// The first position; 0 unless given.
    pub from: Option<u64>,
    /// At most this many entries; all of them unless given.
    pub limit: Option<usize>,
}

/// What a stream of events shall hold besides the journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// What tools print while they run too, as events `output`: `{call, text}`.
    #[serde(default)]
    pub output: bool,
}

/// Of which time to count what models took. Instants are RFC 3339; a day means its first instant, UTC.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SpendQuery {
    /// From this day or instant on; the first of the month unless given.
    pub since: Option<String>,
    /// Before this day or instant; now unless given.
    pub until: Option<String>,
    /// Where an earlier answer ended: its `next`.
    pub from: Option<u64>,
}

/// What models took in a time, as far as this answer counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendView {
    /// The first instant that counts.
    pub since: String,
    /// The first one after it that does not.
    pub until: String,
    /// The sums; those of further answers with the same names are to be added.
    pub lines: Vec<SpendLine>,
    /// Where to go on, with the same times; absent: this was all.
    pub next: Option<u64>,
}

/// What the calls of one model took on a day, for one job of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendLine {
    /// The day of the replies, UTC: `2026-11-23`.
    pub day: String,
    /// The owner of the repository; empty when the start of the run is not known.
    pub organization: String,
    /// The repository; empty when the start of the run is not known.
    pub repository: String,
    /// The ticket.
    pub ticket: String,
    /// The kind of work; empty when the start of the run is not known.
    pub job: String,
    /// The provider, by its name in the settings; empty in records of former releases.
    pub provider: String,
    /// The model, as its provider names it.
    pub model: String,
    /// Replies.
    pub calls: u64,
    /// Dollars; replies without a known price count nothing.
    #[schema(value_type = f64)]
    pub cost_usd: Dollars,
    /// Tokens read and written.
    pub tokens: u64,
    /// Replies without a known price.
    pub unpriced: u64,
}

/// A ticket with its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketView {
    /// Its key, e.g. `jira:ENG-12`.
    pub ticket: String,
    /// Its runs, oldest first.
    pub runs: Vec<RunView>,
    /// The pull requests opened for it.
    #[schema(value_type = Vec<Object>)]
    pub pull_requests: Vec<PullRequestRef>,
    /// How they stand: checks, reviews, merged or not; the newest that webhooks and polls told.
    #[serde(default)]
    pub standing: Vec<PullRequestView>,
    /// When its timer is due.
    pub due: Option<String>,
    /// Why it is quarantined.
    pub quarantined: Option<String>,
    /// Why the last request that was skipped was skipped.
    pub last_skip: Option<String>,
}

/// What a person says to the live runs of a ticket.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentBody {
    /// Markdown.
    pub text: String,
}

/// A decision at an approval gate.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionBody {
    /// `approve`, `reject` or `revise`.
    #[schema(value_type = String)]
    pub verdict: Verdict,
    /// The commit that it is about, or at least its first 7 characters; an approval must name it.
    #[serde(default)]
    pub head: String,
    /// For `revise`: what to change; at most 8,000 characters.
    #[serde(default)]
    pub feedback: String,
}

impl DecisionBody {
    /// The largest feedback in characters.
    pub const FEEDBACK_CHARS: usize = 8_000;
}

/// A request that was written down and will be acted on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The ticket.
    pub ticket: String,
    /// The identity of the request.
    pub key: String,
    /// Its place in the log of triggers.
    pub sequence: u64,
}

/// Whether only what would happen is asked for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct DryRun {
    /// Only tell what would happen: the answer is 200, and nothing is written.
    pub dry_run: bool,
}

/// What would happen. Nothing has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Would {
    /// One line for each thing, as what follows "would"; empty: nothing would change.
    pub would: Vec<String>,
}

/// Something that could not be handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadView {
    /// Its place among the dead letters.
    pub sequence: u64,
    /// `delivery`, `trigger`, `report` or `ticket`.
    pub what: String,
    /// Its identity.
    pub id: String,
    /// The ticket, when it is known.
    pub ticket: Option<String>,
    /// Why.
    pub reason: String,
    /// When.
    pub at: String,
}

/// A dead letter with what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDetail {
    /// The letter.
    pub letter: DeadView,
    /// What it is about, as text; at most 64 KiB of it.
    pub body: String,
}

/// The switch that stops every planner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopAllView {
    /// True while no ticket is worked on.
    pub on: bool,
    /// Who switched it on.
    pub by: Option<String>,
    /// When.
    pub at: Option<String>,
}

/// The rules that are loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesView {
    /// Repositories with working rules.
    pub repositories: Vec<RepositoryView>,
    /// Files that do not work.
    pub problems: Vec<RulesProblemView>,
}

/// A repository with working rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepositoryView {
    /// `acme/shop`.
    pub repository: String,
    /// Its Jira project; empty when it has none.
    pub project: String,
    /// The status that asks for work.
    pub status: String,
    /// What Jira does not know of it: the project or the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What is wrong in a rules file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesProblemView {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 when it is not known.
    pub line: u64,
    /// The dotted key.
    pub key: String,
    /// What to change.
    pub problem: String,
}
