//! Rendering of a journal's entries for people, as pure functions. Pages, terminals and callers of the API
//! use this single rendering.
//!
//! It has a separate version, because a journal may gain facts while the form of the rendering remains.

mod line;
mod model;
mod report;
mod run;
mod work;

use domain::{Entry, Fact};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use line::Line;
pub use line::dollars;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Model => "model",
            Self::Executor => "executor",
            Self::Reporter => "reporter",
            Self::Person => "person",
        }
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
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        Self {
            version: Self::VERSION,
            entries: entries.into_iter().map(EntryView::from).collect(),
        }
    }
}

impl From<&Entry> for EntryView {
    fn from(entry: &Entry) -> Self {
        let Line {
            who,
            tone,
            head,
            more,
        } = line(&entry.fact);
        Self {
            position: entry.position,
            at: entry.at.to_string(),
            fact: entry.fact.name().to_owned(),
            who,
            tone,
            head,
            more,
            turn: match &entry.fact {
                // Summaries have no turn, so only this fact begins one.
                Fact::ModelRequested { turn, .. } => Some(*turn),
                _ => None,
            },
        }
    }
}

fn line(fact: &Fact) -> Line {
    match fact {
        Fact::RunStarted { trigger } => run::started(trigger),
        Fact::TakenOver { fence } => run::taken_over(*fence),
        Fact::LimitsSet { limits, .. } => run::limits(limits),
        Fact::BudgetRefused { reason, .. } => run::refused_by_budget(reason),
        Fact::EffortForecast { forecast } => run::forecast(forecast.as_ref()),
        Fact::ClassRaised { class } => run::raised(*class),
        Fact::Parked { waits_for } => run::parked(*waits_for),
        Fact::RetryScheduled {
            attempt, due, reason, ..
        } => run::retry(*attempt, *due, reason),
        Fact::Retried { by } => run::retried(by.as_deref()),
        Fact::Decided { decision, by } => run::decided(decision, by),
        Fact::StopRequested { by } => run::stop_requested(by),
        Fact::NewsArrived { news, .. } => run::news(news),
        Fact::HeadMoved { head, by } => run::head_moved(head, by.as_deref()),
        Fact::RunFinished { reason } => run::finished(reason),
        Fact::WorkspaceRequested { .. } => work::requested(),
        Fact::WorkspaceOpened { workspace, .. } => work::opened(workspace),
        Fact::WorkspaceFailed { detail, .. } => Line::failed(Who::Executor, "no workspace", detail),
        Fact::WorkspaceRestored { workspace, .. } => work::restored(workspace),
        Fact::WentBack { .. } => work::went_back(),
        Fact::ToolRequested { call, .. } => work::tool(call),
        Fact::ToolFinished { result, .. } => work::result(result),
        Fact::CodeFound { seeds, note } => work::code(seeds, note),
        Fact::ChecksFound { candidates } => work::candidates(candidates),
        Fact::CheckRequested { check, .. } => work::check(check),
        Fact::CheckRan { run, .. } => work::checked(run),
        Fact::ChangeInspected { report } => work::change(report.as_deref()),
        Fact::SnapshotTaken { snapshot, .. } => work::snapshot(snapshot),
        Fact::SnapshotFailed { reason, .. } => {
            Line::failed(Who::Executor, "the changes cannot be kept", reason)
        }
        Fact::ModelRequested { turn, phase, .. } => model::asked(*turn, *phase),
        Fact::ModelReplied { reply, .. } => model::replied(reply),
        Fact::ModelFailed { detail, .. } => Line::failed(Who::Model, "failed", detail),
        Fact::Hinted { hint, .. } => model::hinted(hint),
        Fact::ContextCleared { turns, tokens, .. } => model::cleared(*turns, *tokens),
        Fact::SummaryRequested { turns, tokens, .. } => model::summary_asked(*turns, *tokens),
        Fact::Summarized { reply, .. } => model::summed_up(reply),
        Fact::SummaryFailed { detail, .. } => Line::failed(Who::Model, "no summary", detail),
        Fact::PhaseFinished { output } => model::output(output),
        Fact::Returned { why } => report::returned(why),
        Fact::ReportRequested { request, .. } => report::requested(request),
        Fact::ReportSettled { outcome, .. } => report::settled(outcome),
    }
}

#[cfg(test)]
mod tests;
