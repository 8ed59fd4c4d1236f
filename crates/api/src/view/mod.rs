//! An entry of a journal as people read it: the one rendering for pages, terminals and callers of the API. Pure.
//!
//! It has a version of its own, because a journal may gain facts while what is shown of them stays as it is.

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

/// A part of a run's journal as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimelineView {
    /// Which form the entries have; a higher one may have other words for `who` and `tone`.
    pub version: u32,
    /// The entries, oldest first.
    pub entries: Vec<EntryView>,
}

/// An entry of a journal as people read it. Much of its text is by others: hidden characters are spelled out, nothing is escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryView {
    /// Its place in the journal, by which the entry itself is found.
    pub position: u64,
    /// When it was written.
    pub at: String,
    /// The name of the fact, e.g. `tool_finished`.
    pub fact: String,
    /// Whose doing it is.
    pub who: Who,
    /// How it is to be taken.
    pub tone: Tone,
    /// What happened, on one line of about 160 characters at most.
    pub head: String,
    /// More of it, to fold up: at most about 4,000 characters, which may be several lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
    /// The turn of the model that begins here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// Whose doing something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The planner's.
    Planner,
    /// A model's.
    Model,
    /// An executor's.
    Executor,
    /// The reporter's.
    Reporter,
    /// A person's.
    Person,
}

impl Who {
    /// As the API spells it.
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

/// How something is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Of use to programs; a short list leaves it out.
    Quiet,
    /// By the way.
    Soft,
    /// Like most.
    Plain,
    /// A success.
    Good,
    /// Somebody may want to know.
    Warm,
    /// A failure.
    Bad,
}

impl TimelineView {
    /// The form of [`EntryView`] that this release writes.
    pub const VERSION: u32 = 1;

    /// These entries.
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
