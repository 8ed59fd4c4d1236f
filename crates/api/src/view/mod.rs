//! Rendering of a journal's entries for people, as pure functions. Pages, terminals and callers of the API
//! use this single rendering.
//!
//! It has a separate version, because a journal may gain facts while the form of the rendering remains.

mod line;
mod model;
mod report;
mod run;
mod work;

use domain::{Fact, JournalEntry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use line::TimelineLine;
pub use line::format_dollars;
pub use work::describe_tree;

/// A part of a run's journal as text for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimelineView {
    /// Version of the form of the entries; a higher one may have other values of `who` and `tone`.
    pub version: u32,
    /// The entries, oldest first.
    pub entries: Vec<EntryView>,
}

/// An entry of a journal as text for people. Much of its text is by others: hidden characters are spelled
/// out, nothing is escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryView {
    /// Position in the journal, which identifies the original entry.
    pub position: u64,
    /// Time of the entry.
    pub at: String,
    /// The name of the fact, e.g. `tool_finished`.
    pub fact: String,
    /// Actor of the event.
    pub who: Who,
    /// Importance and kind of the event.
    pub tone: Tone,
    /// Description of the event on one line of at most about 160 characters.
    pub head: String,
    /// Additional text, which may have several lines and at most about 4,000 characters. Clients can fold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
    /// The turn of the model that begins with this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// Actor of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The planner acted.
    Planner,
    /// A model acted.
    Model,
    /// An executor acted.
    Executor,
    /// The reporter acted.
    Reporter,
    /// A person acted.
    Person,
}

impl Who {
    /// The spelling in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Importance and kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Useful for programs; short lists omit it.
    Quiet,
    /// A detail of minor importance.
    Soft,
    /// A normal event of a run.
    Plain,
    /// A success of the run.
    Good,
    /// An event that needs attention.
    Warm,
    /// A failure of the run.
    Bad,
}

impl TimelineView {
    /// The form of [`EntryView`] that this release writes.
    pub const VERSION: u32 = 1;

    /// Renders these entries.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Self {
        Self {
            version: Self::VERSION,
            entries: entries.into_iter().map(EntryView::from).collect(),
        }
    }
}

impl From<&JournalEntry> for EntryView {
    fn from(entry: &JournalEntry) -> Self {
        let TimelineLine {
            who,
            tone,
            head,
            more,
        } = render_fact(&entry.fact);
        Self {
            position: entry.position,
            at: entry.at.to_string(),
            fact: entry.fact.name().to_owned(),
            who,
            tone,
            head,
            more,
            turn: begun_turn(&entry.fact),
        }
    }
}

/// Returns the turn that a fact begins. Summaries have no turn, so only a model request begins one.
const fn begun_turn(fact: &Fact) -> Option<u32> {
    if let Fact::ModelRequested { turn, .. } = fact {
        Some(*turn)
    } else {
        None
    }
}

fn render_fact(fact: &Fact) -> TimelineLine {
    match fact {
        Fact::RunStarted { trigger } => run::render_run_start(trigger),
        Fact::TakenOver { fence } => run::render_takeover(*fence),
        Fact::LimitsSet { limits, .. } => run::render_limits(limits),
        Fact::BudgetRefused { reason, .. } => run::render_budget_refusal(reason),
        Fact::EffortForecast { forecast } => run::render_estimate(forecast.as_ref()),
        Fact::ClassRaised { class } => run::render_raised_class(*class),
        Fact::Parked { waits_for } => run::render_wait(*waits_for),
        Fact::RetryScheduled {
            attempt, due, reason, ..
        } => run::render_retry_schedule(*attempt, *due, reason),
        Fact::Retried { by, .. } => run::render_retry(by.as_deref()),
        Fact::Decided { decision, by } => run::render_decision(decision, by),
        Fact::StopRequested { by } => run::render_stop_request(by),
        Fact::NewsArrived { news, .. } => run::render_news(news),
        Fact::HeadMoved { head, by, .. } => run::render_head_move(head, by.as_deref()),
        Fact::RunFinished { reason } => run::render_run_end(reason),
        Fact::WorkspaceRequested { .. } => work::render_workspace_request(),
        Fact::WorkspaceOpened { workspace, .. } => work::render_workspace(workspace),
        Fact::WorkspaceFailed { detail, .. } => TimelineLine::failed(Who::Executor, "no workspace", detail),
        Fact::WorkspaceRestored { workspace, .. } => work::render_restored_workspace(workspace),
        Fact::WentBack { .. } => work::render_restored_snapshot(),
        Fact::ToolRequested { call, .. } => work::render_tool_call(call),
        Fact::ToolFinished { result, .. } => work::render_tool_result(result),
        Fact::McpToolsListed { servers } => work::render_mcp_servers(servers),
        Fact::CodeFound { seeds, note } => work::render_code_seeds(seeds, note),
        Fact::ChecksFound { candidates } => work::render_check_candidates(candidates),
        Fact::CheckRequested { check, .. } => work::render_check(check),
        Fact::CheckRan { run, .. } => work::render_check_result(run),
        Fact::ChangeInspected { report } => work::render_change(report.as_deref()),
        Fact::SnapshotTaken { snapshot, .. } => work::render_snapshot(snapshot),
        Fact::SnapshotFailed { reason, .. } => {
            TimelineLine::failed(Who::Executor, "the changes cannot be kept", reason)
        }
        Fact::ModelRequested { turn, phase, .. } => model::render_model_request(*turn, *phase),
        Fact::ModelReplied { reply, .. } => model::render_model_reply(reply),
        Fact::ModelFailed { detail, .. } => TimelineLine::failed(Who::Model, "failed", detail),
        Fact::Hinted { hint, .. } => model::render_hint(hint),
        Fact::ContextCleared { turns, tokens, .. } => model::render_cleared_context(*turns, *tokens),
        Fact::SummaryRequested { turns, tokens, .. } => model::render_summary_request(*turns, *tokens),
        Fact::Summarized { reply, .. } => model::render_summary(reply),
        Fact::SummaryFailed { detail, .. } => TimelineLine::failed(Who::Model, "no summary", detail),
        Fact::PhaseFinished { output } => model::render_phase_output(output),
        Fact::Returned { why } => report::render_return(why),
        Fact::ReportRequested { request, .. } => report::render_request(request),
        Fact::ReportSettled { outcome, .. } => report::render_outcome(outcome),
    }
}

#[cfg(test)]
mod tests;
