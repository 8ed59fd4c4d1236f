//! Types of requests and answers of the API, as JSON. Times are RFC 3339 in UTC.

mod activity;
mod credentials;
mod health;
mod jobs;
mod pools;
mod pull_requests;
mod runs;
mod tickets;

use std::collections::BTreeMap;

use domain::{DecisionVerdict, Dollars, PullRequestRef};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use utoipa::{IntoParams, ToSchema};

pub use self::{
    activity::{ActivityDay, ActivityQuery, ActivityTotal, ActivityView},
    credentials::CredentialView,
    health::{AutoMergeView, ConversationLockView, HealthView},
    jobs::{ContextBody, JobAccepted, JobBody, JobPlanned, JobStarted, TextBody},
    pools::{ExecutorView, MakeView, PoolView, PoolsView},
    pull_requests::{
        CallState, ChecksView, FailedCheckView, PullRequestBody, PullRequestCallView, PullRequestView,
        ReviewView,
    },
    runs::{DiffSource, OverviewView, PullRequestLine, QuestionView, RunDiff, RunState, RunView, RunsQuery},
    tickets::{
        CommentView, ListProblem, TicketLine, TicketStanding, TicketSummariesQuery, TicketSummary,
        TicketTextView, TicketsQuery, TicketsView,
    },
};

/// Permissions of a token; each role includes the previous ones.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Permission to read.
    Viewer,
    /// Permission to dispatch jobs, decide and stop.
    Operator,
    /// Permission for every call.
    Admin,
}

impl Role {
    /// The spelling in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Bearer of the token of a call, or the person on whose behalf it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallerView {
    /// The name in journals: that of the token, or of the person with the token's.
    pub name: String,
    /// Role that limits the calls.
    pub role: Role,
    /// True for a token that reaches some repositories and projects only.
    pub is_limited: bool,
    /// Release of the API.
    pub version: String,
}

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemView {
    /// A stable name of the condition, e.g. `not_found`.
    pub error: String,
    /// Description for people.
    pub detail: String,
}

/// Range of a journal to read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JournalQuery {
    /// The first position; 0 by default.
    pub from: Option<u64>,
    /// Maximum number of entries; all by default.
    pub limit: Option<usize>,
}

/// Contents of an event stream in addition to the journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Include the output of running tools, as events `output`: `{call, text}`.
    #[serde(default)]
    pub output: bool,
}

/// Period for the cost of models. Times are RFC 3339; a day means its first instant in UTC.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SpendQuery {
    /// Start of the period, a day or a time; the first of the month by default.
    pub since: Option<String>,
    /// End of the period (exclusive), a day or a time; now by default.
    pub until: Option<String>,
    /// Position for the next page: the `next` of the previous answer.
    pub from: Option<u64>,
}

/// Cost of models in a period; one page of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendView {
    /// Start of the period.
    pub since: String,
    /// End of the period, exclusive.
    pub until: String,
    /// The sums. Lines of further pages with the same names have to be added.
    pub lines: Vec<SpendLine>,
    /// Position for the next page with the same period; absent: this is the last page.
    pub next: Option<u64>,
}

/// Cost of one model on a day, for one job of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendLine {
    /// The day of the replies, UTC: `2026-11-23`.
    pub day: String,
    /// The owner of the repository; empty when the start of the run is unknown.
    pub organization: String,
    /// The repository; empty when the start of the run is unknown.
    pub repository: String,
    /// Key of the ticket.
    pub ticket: String,
    /// The kind of work; empty when the start of the run is unknown.
    pub job: String,
    /// The provider by its name in the settings; empty in records of earlier releases.
    pub provider: String,
    /// The model by its provider's name for it.
    pub model: String,
    /// Number of replies of the model.
    pub calls: u64,
    /// Cost in dollars; replies without a known price count as 0.
    #[schema(value_type = f64)]
    pub cost_usd: Dollars,
    /// Number of tokens read and written.
    pub tokens: u64,
    /// Number of replies without a known price.
    pub unpriced: u64,
}

/// Sum of the lines under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendTotal {
    /// Number of replies of models.
    pub calls: u64,
    /// Cost in dollars; replies without a known price count as 0.
    pub cost_usd: Dollars,
    /// Number of tokens read and written.
    pub tokens: u64,
    /// Number of replies without a known price.
    pub unpriced: u64,
}

impl SpendView {
    /// Sums the lines by a name, in the order of the names; the sums saturate.
    pub fn sum_by<'a>(&'a self, name_of: impl Fn(&'a SpendLine) -> &'a str) -> BTreeMap<&'a str, SpendTotal> {
        let mut sums = BTreeMap::<&str, SpendTotal>::new();
        for line in &self.lines {
            let sum = sums.entry(name_of(line)).or_default();
            sum.calls = sum.calls.saturating_add(line.calls);
            sum.cost_usd = sum.cost_usd.plus(line.cost_usd);
            sum.tokens = sum.tokens.saturating_add(line.tokens);
            sum.unpriced = sum.unpriced.saturating_add(line.unpriced);
        }
        sums
    }
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
    /// Status of these pull requests: checks, reviews, merged or closed; the latest from webhooks and polls.
    #[serde(default)]
    // An API of an earlier release does not send this field.
    pub standing: Vec<PullRequestView>,
    /// Time of its timer.
    pub due: Option<String>,
    /// Reason for its quarantine.
    pub quarantined: Option<String>,
    /// Reason for which the last skipped request was skipped.
    pub last_skip: Option<String>,
    /// Lock of its conversation; absent while it is not locked, and for tickets of Jira.
    #[serde(default)]
    pub conversation_lock: Option<ConversationLockView>,
}

/// A comment for the active runs of a ticket.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentBody {
    /// Text of the comment as Markdown.
    pub text: String,
}

/// A decision at an approval gate.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionBody {
    /// The verdict: `approve`, `reject` or `revise`.
    #[schema(value_type = String)]
    pub verdict: DecisionVerdict,
    // The commit may have changed since the person read it, so an approval has to name it.
    /// The commit that it is about, or at least its first 12 characters; required for an approval.
    #[serde(default)]
    pub head: String,
    /// Requested changes for `revise`; at most 8,000 characters.
    #[serde(default)]
    pub feedback: String,
}

impl DecisionBody {
    /// Maximum characters of the feedback.
    pub const FEEDBACK_CHARS: usize = 8_000;
}

/// An accepted request, which is stored and will be processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// Key of the ticket.
    pub ticket: String,
    /// Key that identifies the request.
    pub key: String,
    /// Stream sequence in the log of triggers.
    pub sequence: u64,
}

/// Option to return the effects of a call without performing them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema, utoipa::IntoParams)]
// Unknown fields are refused, because a misspelled `dry_run` would perform the call.
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct DryRun {
    /// Return the effects with status 200, and write nothing.
    pub dry_run: bool,
}

/// Effects of a dry run, which wrote nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Would {
    /// The effects, one per line, each in a form that follows "would"; empty: nothing would change.
    pub would: Vec<String>,
}

/// A dead letter: a message that could not be processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadView {
    /// Stream sequence of the dead letter.
    pub sequence: u64,
    /// Kind of the message: `delivery`, `trigger`, `report` or `ticket`.
    pub what: String,
    /// Id of the message.
    pub id: String,
    /// Key of the ticket, if it is known.
    pub ticket: Option<String>,
    /// Reason of the failure.
    pub reason: String,
    /// Time at which the message was dead-lettered.
    pub at: String,
}

/// A dead letter with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDetail {
    /// Description of the dead letter.
    pub letter: DeadView,
    /// Its content as text; at most 64 KiB.
    pub body: String,
}

/// The switch that stops every planner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopAllView {
    /// True while planners work on no ticket.
    pub on: bool,
    /// The user who switched it on.
    pub by: Option<String>,
    /// Time of the switch.
    pub at: Option<String>,
}

/// The loaded rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesView {
    /// Repositories with valid rules.
    pub repositories: Vec<RepositoryView>,
    /// Problems of invalid files.
    pub problems: Vec<RulesProblemView>,
}

/// A repository with valid rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepositoryView {
    /// Name of the repository, e.g. `acme/shop`.
    pub repository: String,
    /// Key of its Jira project; empty: none.
    pub project: String,
    /// The status that requests work.
    pub status: String,
    /// The project or status that Jira does not have; absent: both exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A problem in a rules file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesProblemView {
    /// Path of the file.
    pub file: String,
    /// The line, from 1; 0 when it is unknown.
    pub line: u64,
    /// The dotted key of the wrong value.
    pub key: String,
    /// Instruction for the correction.
    pub problem: String,
}
