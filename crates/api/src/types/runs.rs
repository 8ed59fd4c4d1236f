//! Runs.

use domain::{Dollars, Job, Overview, PullRequestRef, RepairResult, RunStatus, RunSummary, StopReason};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for earlier runs of the ticket.
    Queued,
    /// A planner works on it.
    Active,
    /// It waits for a report or a decision.
    Parked,
    /// It is over.
    Finished,
}

impl RunState {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Active, Self::Parked, Self::Finished];

    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Active => "active",
            Self::Parked => "parked",
            Self::Finished => "finished",
        }
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

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// Its id, e.g. `jira:ENG-12@57`.
    pub id: String,
    /// Its ticket, e.g. `jira:ENG-12`.
    pub ticket: String,
    /// The kind of work.
    #[schema(value_type = String)]
    pub job: Job,
    /// Where it stands.
    pub status: RunState,
    /// For a parked run: `report`, `decision`, `answer`, `retry` or `slot`.
    pub waits_for: Option<String>,
    /// For a finished run: why it ended.
    #[schema(value_type = Option<Object>)]
    pub stop: Option<StopReason>,
    /// When its trigger was taken up.
    pub started_at: String,
    /// When it ended.
    pub finished_at: Option<String>,
    /// Model turns so far.
    pub turns: u32,
    /// For a finished `fix_ci`, when it is asked for alone: `fixed`, `strategy` (`pre-commit`, `dbt_compile`, a command, `model` or `rerun`),
    /// `commit_sha` and `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub repair: Option<RepairResult>,
    /// What its journal tells; absent: it has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<OverviewView>,
}

/// What the journal of a run tells. In lists it may be some tenths of a second behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverviewView {
    /// Where it works, e.g. `acme/shop`; absent: it needs no repository, or none is known.
    pub repository: Option<String>,
    /// The ticket's first line as it was when work was asked for; empty where the request had none. Text by others.
    pub title: String,
    /// Who asked for it, as the outside names them.
    pub actor: Option<String>,
    /// What its last conversation with the model is for.
    pub phase: Option<String>,
    /// Where it waits for a decision: the commit or plan that is decided about.
    pub decides_about: Option<String>,
    /// When its last entry was written.
    pub updated_at: String,
    /// Tools that ran.
    pub tool_calls: u32,
    /// Tries after failures that may pass.
    pub retries: u32,
    /// Planners that took it over from another one.
    pub takeovers: u32,
    /// Dollars, as far as prices are known.
    #[schema(value_type = f64)]
    pub cost_usd: Dollars,
    /// Replies without a known price.
    pub unpriced: u32,
    /// Tokens read and written.
    pub tokens: u64,
    /// What models read that their provider had not kept.
    #[serde(default)]
    pub input_tokens: u64,
    /// What they read that it had kept.
    #[serde(default)]
    pub cached_tokens: u64,
    /// What they wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// How long models thought, in milliseconds.
    pub model_ms: u64,
    /// How long tools and checks ran, in milliseconds.
    pub tools_ms: u64,
    /// How long it waited for people, reports, slots or a retry, in milliseconds.
    pub waiting_ms: u64,
    /// How strong the evidence for its change is, `E0` to `E4`; absent: none was sought yet.
    pub evidence: Option<String>,
    /// The branch that it pushed last.
    pub branch: Option<String>,
    /// Pull requests that it opened, at most ten.
    #[schema(value_type = Vec<Object>)]
    pub pull_requests: Vec<PullRequestRef>,
    /// The name of the last fact.
    pub last: String,
    /// How many entries its journal has.
    pub entries: u64,
}

impl From<&Overview> for OverviewView {
    fn from(overview: &Overview) -> Self {
        let Overview { spend, time, .. } = overview;
        Self {
            repository: overview.repository.as_ref().map(ToString::to_string),
            title: overview.title.clone(),
            actor: overview.actor.clone(),
            phase: overview.phase.map(|phase| phase.as_str().to_owned()),
            decides_about: overview.gate.as_ref().map(|gate| gate.head.to_string()),
            updated_at: overview.updated_at.to_string(),
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
            last: overview.last.clone(),
            entries: overview.entries,
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

/// Which runs to list. All that is given must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// Only of this ticket.
    pub ticket: Option<String>,
    /// Only of this repository, e.g. `acme/shop`.
    pub repository: Option<String>,
    /// Only of this kind of work, e.g. `implement`.
    #[param(value_type = Option<String>)]
    pub job: Option<Job>,
    /// Only in this state.
    #[param(value_type = Option<String>)]
    pub status: Option<RunState>,
    /// Only those that wait for this: `report`, `decision`, `answer`, `retry` or `slot`; `person` means a decision or an answer.
    pub waits_for: Option<String>,
    /// Only those that ended for this reason, e.g. `completed`; `failed` means every reason but `completed`.
    pub stop: Option<String>,
    /// Only those that were asked for before this run, which need not exist any more: the last one of an earlier answer.
    pub before: Option<String>,
    /// At most this many, newest first; 100 unless given, 1,000 at most.
    pub limit: Option<usize>,
}

impl RunsQuery {
    /// As many runs as are given at once.
    pub const MOST: usize = 1_000;
    /// [`RunsQuery::waits_for`] whatever only a person can give.
    pub const PERSON: &'static str = "person";
}
