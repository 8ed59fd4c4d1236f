//! Answers about runs, and the query for lists.

use domain::{
    Dollars, Job, PullRequestRef, PullRequestStatus, RepairResult, RunOverview, RunStatus, RunSummary,
    StopReason, TicketQuestion,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// The run waits for earlier runs of the ticket.
    Queued,
    /// A planner works on the run.
    Active,
    /// The run waits for an event, such as a report or a decision.
    Parked,
    /// The run is finished.
    Finished,
}

impl RunState {
    /// All states, in the order of a run's life.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Active, Self::Parked, Self::Finished];

    /// The spelling in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<&RunStatus> for RunState {
    fn from(status: &RunStatus) -> Self {
        match status {
            RunStatus::Queued => Self::Queued,
            RunStatus::Active => Self::Active,
            RunStatus::Parked { .. } => Self::Parked,
            RunStatus::Finished { .. } => Self::Finished,
        }
    }
}

/// A run of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// Its id, e.g. `jira:ENG-12@57`.
    pub id: String,
    /// Its ticket, e.g. `jira:ENG-12`.
    pub ticket: String,
    /// The kind of work.
    #[schema(value_type = String)]
    pub job: Job,
    /// State of the run.
    pub status: RunState,
    /// For a parked run: `report`, `decision`, `answer`, `retry` or `slot`.
    pub waits_for: Option<String>,
    /// For a finished run: the reason for its end.
    #[schema(value_type = Option<Object>)]
    pub stop: Option<StopReason>,
    /// Time at which its trigger was processed.
    pub started_at: String,
    /// Time of its end.
    pub finished_at: Option<String>,
    /// Number of model turns so far.
    pub turns: u32,
    /// For a single finished `fix_ci` run: `fixed`, `strategy` (`pre-commit`, `dbt_compile`, a command,
    /// `model` or `rerun`), `commit_sha` and `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub repair: Option<RepairResult>,
    /// Summary of its journal; absent: the run has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<OverviewView>,
}

/// Summary of a run's journal. In lists it may be some tenths of a second old.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverviewView {
    /// Repository of the work, e.g. `acme/shop`; absent: none is needed, or it is unknown.
    pub repository: Option<String>,
    /// Title of the ticket at the time of the request; empty for a request without one. Text by others.
    pub title: String,
    /// The user who requested the work, by the name in the tracker.
    pub actor: Option<String>,
    /// Phase of its last conversation with the model.
    pub phase: Option<String>,
    /// The commit or plan of the decision that it waits for.
    pub decides_about: Option<String>,
    /// Questions for which a parked run waits for a person. Text of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionView>,
    /// Time of its last entry.
    pub updated_at: String,
    /// Time at which it began to wait; absent: it does not wait, or the time is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_at: Option<String>,
    /// Number of finished tools and checks.
    pub tool_calls: u32,
    /// Number of retries after transient failures.
    pub retries: u32,
    /// Number of takeovers by another planner.
    pub takeovers: u32,
    /// Cost in dollars, within the known prices.
    #[schema(value_type = f64)]
    pub cost_usd: Dollars,
    /// Number of replies without a known price.
    pub unpriced: u32,
    /// Number of tokens read and written.
    pub tokens: u64,
    /// Number of tokens that models read, cached ones included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Number of tokens that models read from the provider's cache, a part of `input_tokens`.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Number of tokens that models wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Time of model calls, in milliseconds.
    pub model_ms: u64,
    /// Time of tools and checks, in milliseconds.
    pub tools_ms: u64,
    /// Time of waiting for people, reports, slots or a retry, in milliseconds.
    pub waiting_ms: u64,
    /// Strength of the evidence for its change, `E0` to `E3`; absent: not yet checked.
    pub evidence: Option<String>,
    /// The branch that it pushed last.
    pub branch: Option<String>,
    /// Pull requests that it opened, at most ten.
    #[schema(value_type = Vec<Object>)]
    pub pull_requests: Vec<PullRequestRef>,
    /// In lists, the pull requests of the run, or of its ticket where it opened none, with their status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_request_lines: Vec<PullRequestLine>,
    /// The name of the last fact.
    pub last: String,
    /// Number of entries in its journal.
    pub entries: u64,
}

/// A question to a person, with suggested answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuestionView {
    /// Text of the question.
    pub text: String,
    /// Suggested answers; may be empty.
    pub options: Vec<String>,
}

impl From<&TicketQuestion> for QuestionView {
    fn from(question: &TicketQuestion) -> Self {
        Self {
            text: question.text.clone(),
            options: question.options.clone(),
        }
    }
}

/// A pull request in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PullRequestLine {
    /// Repository that contains it, e.g. `acme/shop`.
    pub repository: String,
    /// Its number.
    pub number: u64,
    /// URL of its page.
    pub url: String,
    /// Status: `open`, `merged` or `closed`; absent: unknown.
    #[schema(value_type = Option<String>)]
    pub status: Option<PullRequestStatus>,
}

impl PullRequestLine {
    /// Creates the line of a pull request with its status in the index.
    pub fn new(pull_request: &PullRequestRef, status: Option<PullRequestStatus>) -> Self {
        Self {
            repository: pull_request.repository.to_string(),
            number: pull_request.number,
            url: pull_request.url.clone(),
            status,
        }
    }
}

impl From<&RunOverview> for OverviewView {
    fn from(overview: &RunOverview) -> Self {
        let RunOverview { spend, time, .. } = overview;
        // An answered question is history, which the journal has.
        let is_asking =
            matches!(overview.status, RunStatus::Parked { waits_for } if waits_for.is_for_person());
        let questions = overview.questions.iter().filter(|_| is_asking);
        Self {
            repository: overview.repository.as_ref().map(ToString::to_string),
            title: overview.title.clone(),
            actor: overview.actor.clone(),
            phase: overview.phase.map(|phase| phase.as_str().to_owned()),
            decides_about: overview.gate.as_ref().map(|gate| gate.head.to_string()),
            questions: questions.map(Into::into).collect(),
            updated_at: overview.updated_at.to_string(),
            parked_at: overview.parked_at.map(|at| at.to_string()),
            tool_calls: overview.tool_calls,
            retries: overview.retries,
            takeovers: overview.takeovers,
            cost_usd: spend.cost_usd,
            unpriced: spend.unpriced,
            tokens: spend.tokens,
            input_tokens: spend.input_tokens,
            cached_tokens: spend.cached_tokens,
            output_tokens: spend.output_tokens,
            model_ms: time.model_ms,
            tools_ms: time.tools_ms,
            waiting_ms: time.waiting_ms,
            evidence: overview.evidence.map(|level| level.to_string()),
            branch: overview.branch.clone(),
            pull_requests: overview.pull_requests.clone(),
            // Only a list knows the index of pull requests.
            pull_request_lines: Vec::new(),
            last: overview.last.clone(),
            entries: overview.entries,
        }
    }
}

impl RunView {
    /// Time since which a parked run waits. Where it is unknown, the time of the last entry, which news may have moved.
    pub fn waits_since(&self) -> &str {
        match &self.overview {
            Some(overview) => overview.parked_at.as_ref().unwrap_or(&overview.updated_at),
            None => &self.started_at,
        }
    }
}

impl From<&RunSummary> for RunView {
    fn from(run: &RunSummary) -> Self {
        let (waits_for, stop) = match &run.status {
            RunStatus::Queued | RunStatus::Active => (None, None),
            RunStatus::Parked { waits_for } => (Some(waits_for.as_str().to_owned()), None),
            RunStatus::Finished { reason } => (None, Some(reason.clone())),
        };
        Self {
            id: run.id.to_string(),
            ticket: run.id.ticket().to_string(),
            job: run.job,
            status: RunState::from(&run.status),
            waits_for,
            stop,
            started_at: run.started_at.to_string(),
            finished_at: run.finished_at.map(|at| at.to_string()),
            turns: run.turns,
            repair: None,
            overview: None,
        }
    }
}

/// Filter for a list of runs. All given conditions must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// Only runs of this ticket.
    pub ticket: Option<String>,
    /// Only runs of this repository, e.g. `acme/shop`.
    pub repository: Option<String>,
    /// Only runs of this kind of work, e.g. `implement`.
    #[param(value_type = Option<String>)]
    pub job: Option<Job>,
    /// Only runs in this state.
    #[param(value_type = Option<String>)]
    pub status: Option<RunState>,
    /// Only runs that wait for this: `report`, `decision`, `answer`, `retry` or `slot`; `person` means a
    /// decision or an answer.
    pub waits_for: Option<String>,
    /// Only runs that ended for this reason, e.g. `completed`; `failed` means every reason but `completed`.
    pub stop: Option<String>,
    /// Only runs with all of these words in their id, title, repository, branch, person or pull request.
    pub search: Option<String>,
    /// Only runs requested before this run, which may no longer exist: the last one of the previous page.
    pub before: Option<String>,
    /// Maximum number of runs, newest first; 100 by default, at most 1,000.
    pub limit: Option<usize>,
}

impl RunsQuery {
    /// Maximum number of runs in one answer.
    pub const MOST: usize = 1_000;
    /// Value of [`RunsQuery::waits_for`] for every wait that only a person can end.
    pub const PERSON: &'static str = "person";
    /// Value of [`RunsQuery::stop`] for every reason but completion.
    pub const FAILED: &'static str = "failed";
}

/// Origin of the difference that a run shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DiffSource {
    /// A person was asked to decide about it.
    Decision,
    /// The run pushed it.
    Pushed,
    /// The workspace of the run showed it, perhaps truncated.
    Workspace,
}

impl DiffSource {
    /// All origins.
    pub const ALL: [Self; 3] = [Self::Decision, Self::Pushed, Self::Workspace];

    /// The spelling in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the origin with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

/// Difference of a run's change as text in git's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDiff {
    /// Text of the difference.
    pub text: String,
    /// Origin of the text.
    pub source: DiffSource,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STORED: &str = include_str!("../../../domain/tests/stored/v1/overview.jsonl");

    fn view_asking_run(status: Value) -> OverviewView {
        let stored = STORED.lines().next().unwrap();
        let mut stored: Value = serde_json::from_str(stored).unwrap();
        stored["status"] = status;
        stored["questions"] = json!([{"text": "Gross or net?", "options": ["gross", "net"]}]);
        let overview: RunOverview = serde_json::from_value(stored).unwrap();
        OverviewView::from(&overview)
    }

    #[test]
    fn wait_begins_with_park_or_last_entry() {
        let mut run = RunView::from(&RunSummary {
            id: "jira:ENG-1@7".parse().unwrap(),
            job: Job::Implement,
            status: RunStatus::Active,
            started_at: domain::Timestamp::from_unix_ms(0),
            finished_at: None,
            turns: 0,
        });
        assert_eq!(run.waits_since(), "1970-01-01T00:00:00Z");
        let mut overview = OverviewView {
            updated_at: "2026-11-25T09:40:00Z".to_owned(),
            ..OverviewView::default()
        };
        run.overview = Some(overview.clone());
        assert_eq!(run.waits_since(), "2026-11-25T09:40:00Z");
        overview.parked_at = Some("2026-11-25T09:30:00Z".to_owned());
        run.overview = Some(overview);
        assert_eq!(run.waits_since(), "2026-11-25T09:30:00Z");
    }

    #[test]
    fn questions_are_shown_while_run_waits() {
        let asking = view_asking_run(json!({"status": "parked", "waits_for": "answer"}));
        let question = QuestionView {
            text: "Gross or net?".to_owned(),
            options: vec!["gross".to_owned(), "net".to_owned()],
        };
        assert_eq!(asking.questions, [question]);
        for other in [
            json!({"status": "active"}),
            json!({"status": "parked", "waits_for": "report"}),
        ] {
            assert!(view_asking_run(other.clone()).questions.is_empty(), "{other}");
        }
    }
}
