//! Overview of a run for people: a fold of its journal for pages, listings and counts, with the time per
//! activity.
//!
//! The planner folds the same journal into the state that it needs to continue. The overview does not depend
//! on that state, so a planner of another release changes nothing here.

use serde::{Deserialize, Serialize};

use crate::{
    budget::amounts::ModelSpend,
    evidence::check::EvidenceLevel,
    identity::{
        commit::CommitId, ids::RunId, repository::RepositoryName, ticket::TicketQuestion, time::Timestamp,
    },
    journal::{
        approval_gate::GateStep,
        fact::{Fact, JournalEntry},
        kind::RecordKind,
        record_format::StoredRecord,
        row::{RunStatus, RunSummary},
    },
    outbound::report::{OutboundAction, OutboundReceipt},
    text::characters::truncate_text,
    trigger::{
        job::Job,
        pull_request::PullRequestRef,
        reason::{Trigger, TriggerChannel, TriggerReason},
    },
    work::{handover::PhaseOutput, model::RunPhase},
};

// Maximum characters of a title.
const TITLE_CHARS: usize = 200;
// Maximum number of listed pull requests.
const PULL_REQUESTS: usize = 10;
// Maximum characters of a question and of a suggested answer, and maximum number of suggested answers.
const QUESTION_CHARS: usize = 1_000;
const OPTION_CHARS: usize = 300;
const OPTIONS: usize = 10;

/// Overview of a run for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOverview {
    /// Id of the run.
    pub run: RunId,
    /// The kind of work.
    pub job: Job,
    /// Repository of the work; absent: the job needs no repository, or it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    /// Title of the ticket at the time of the request; empty for a request without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The user who requested the work, by the name in the tracker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The channel of the request.
    pub source: TriggerChannel,
    /// Status of the run. Never queued: a run without entries has no journal.
    pub status: RunStatus,
    /// Phase of its last conversation with the model; absent: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// The gate at which it waits for a person's decision; absent: it does not wait for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<PendingDecision>,
    /// Its last questions to people: those on the ticket, or the goal of a plan. Empty for a question about a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<TicketQuestion>,
    /// Time of its first entry.
    pub started_at: Timestamp,
    /// Time of its last entry.
    pub updated_at: Timestamp,
    /// Time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Time at which it began to wait; absent: it does not wait, or an earlier release stored the overview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_at: Option<Timestamp>,
    /// Number of turns of the model.
    #[serde(default)]
    pub turns: u32,
    /// Number of finished tools and checks.
    #[serde(default)]
    pub tool_calls: u32,
    /// Number of retries after transient failures.
    #[serde(default)]
    pub retries: u32,
    /// Number of takeovers by another planner.
    #[serde(default)]
    pub takeovers: u32,
    /// Cost and tokens of models, within the known prices.
    #[serde(default)]
    pub spend: ModelSpend,
    /// Time per activity.
    #[serde(default)]
    pub time: TimeSpent,
    /// Strength of the evidence for its change; absent: not yet checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceLevel>,
    /// The branch that it pushed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Pull requests that it opened, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_requests: Vec<PullRequestRef>,
    /// The name of the last fact.
    pub last: String,
    /// Number of folded entries.
    pub entries: u64,
    // The commit or plan of its last question at the gate. The gate opens only when the run parks for the
    // decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<CommitId>,
    #[serde(default)]
    clock: ActivityClock,
}

/// An open decision of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingDecision {
    /// Position of the entry that parked the run.
    pub position: u64,
    /// The commit or plan that the decision is about.
    pub head: CommitId,
}

impl PendingDecision {
    /// Returns the key of the decision's trigger. It is the same for all channels, so only the first decision
    /// counts.
    pub fn key(&self, run: &RunId) -> String {
        format!("decision:{run}:{}", self.position)
    }
}

/// Time of a run per activity. The difference to its total time are short steps between these activities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// Time of model calls, in milliseconds.
    pub model_ms: u64,
    /// Time of tools and checks, in milliseconds.
    pub tools_ms: u64,
    /// Time of waiting for people, reports, slots or a retry, in milliseconds.
    pub waiting_ms: u64,
}

impl StoredRecord for RunOverview {
    const KIND: RecordKind = RecordKind::Overview;
}

impl RunOverview {
    /// Folds a journal; `None` when its first entry is missing.
    pub fn of<'a>(run: &RunId, entries: impl IntoIterator<Item = &'a JournalEntry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let mut overview = Self::begin(run, entries.next()?)?;
        for entry in entries {
            overview.apply(entry);
        }
        Some(overview)
    }

    /// Creates the overview from the first entry; `None` when the entry is not the first one of a journal, or
    /// opens no run.
    pub fn begin(run: &RunId, first: &JournalEntry) -> Option<Self> {
        let Fact::RunStarted { trigger } = &first.fact else {
            return None;
        };
        Some(Self {
            run: run.clone(),
            job: trigger.reason.job()?,
            repository: trigger.reason.repository().cloned(),
            title: summarize_title(trigger),
            actor: trigger.actor.clone(),
            source: trigger.source,
            status: RunStatus::Active,
            phase: None,
            gate: None,
            questions: Vec::new(),
            started_at: first.at,
            updated_at: first.at,
            finished_at: None,
            parked_at: None,
            turns: 0,
            tool_calls: 0,
            retries: 0,
            takeovers: 0,
            spend: ModelSpend::default(),
            time: TimeSpent::default(),
            evidence: None,
            branch: None,
            pull_requests: Vec::new(),
            last: first.fact.name().to_owned(),
            entries: first.position + 1,
            asked: None,
            clock: ActivityClock::default(),
        })
    }

    /// Folds the next entry. An entry that is already folded changes nothing.
    pub fn apply(&mut self, entry: &JournalEntry) {
        // Ingest stores its place after the overviews, so it folds some entries again after a crash.
        if entry.position < self.entries {
            return;
        }
        self.entries = entry.position + 1;
        self.updated_at = entry.at;
        entry.fact.name().clone_into(&mut self.last);
        // The old activity gets the elapsed time before the entry determines the next one.
        self.clock.count(entry.at, &mut self.time);
        self.fold(entry);
        self.step_gate(entry);
        self.keep_questions(&entry.fact);
        self.count(&entry.fact);
    }

    /// Returns the part that the row of the ticket also contains.
    pub fn summary(&self) -> RunSummary {
        RunSummary {
            id: self.run.clone(),
            job: self.job,
            status: self.status.clone(),
            started_at: self.started_at,
            finished_at: self.finished_at,
            turns: self.turns,
        }
    }

    // All facts are listed, so that a new one has to be classified here.
    fn fold(&mut self, entry: &JournalEntry) {
        match &entry.fact {
            // These facts come from outside: they end neither an activity nor the wait of a parked run.
            Fact::TakenOver { .. } => self.takeovers = self.takeovers.saturating_add(1),
            Fact::NewsArrived { .. } => {}
            Fact::Parked { waits_for } => {
                let status = RunStatus::Parked {
                    waits_for: *waits_for,
                };
                // A run that parks again after news continues its wait.
                if self.parked_at.is_none() || self.status != status {
                    self.parked_at = Some(entry.at);
                }
                self.status = status;
                self.clock.begin(RunActivity::Waiting);
            }
            Fact::RunFinished { reason } => {
                self.status = RunStatus::Finished {
                    reason: reason.clone(),
                };
                self.finished_at = Some(entry.at);
                self.parked_at = None;
                self.clock.begin(RunActivity::Steps);
            }
            Fact::ModelRequested { phase, .. } => {
                self.phase = Some(*phase);
                self.work(RunActivity::Model);
            }
            Fact::SummaryRequested { .. } => self.work(RunActivity::Model),
            Fact::ModelReplied { .. } => {
                self.turns = self.turns.saturating_add(1);
                self.work(RunActivity::Steps);
            }
            Fact::ToolRequested { .. } | Fact::CheckRequested { .. } | Fact::WorkspaceRequested { .. } => {
                self.work(RunActivity::Tools);
            }
            Fact::ToolFinished { .. } | Fact::CheckRan { .. } => {
                self.tool_calls = self.tool_calls.saturating_add(1);
                self.work(RunActivity::Steps);
            }
            Fact::RetryScheduled { .. } => {
                self.retries = self.retries.saturating_add(1);
                self.work(RunActivity::Steps);
            }
            Fact::PhaseFinished { output } => {
                if let PhaseOutput::Prove { proof } = output {
                    self.evidence = Some(proof.level);
                }
                self.work(RunActivity::Steps);
            }
            Fact::ReportSettled { outcome, .. } => {
                if let Some(receipt) = outcome.receipt() {
                    self.received(receipt);
                }
                self.work(RunActivity::Steps);
            }
            Fact::RunStarted { .. }
            | Fact::WorkspaceOpened { .. }
            | Fact::WorkspaceFailed { .. }
            | Fact::WorkspaceRestored { .. }
            | Fact::WentBack { .. }
            | Fact::LimitsSet { .. }
            | Fact::ModelFailed { .. }
            | Fact::BudgetRefused { .. }
            | Fact::McpToolsListed { .. }
            | Fact::CodeFound { .. }
            | Fact::EffortForecast { .. }
            | Fact::ChecksFound { .. }
            | Fact::ChangeInspected { .. }
            | Fact::ContextCleared { .. }
            | Fact::Summarized { .. }
            | Fact::SummaryFailed { .. }
            | Fact::ClassRaised { .. }
            | Fact::Returned { .. }
            | Fact::HeadMoved { .. }
            | Fact::SnapshotTaken { .. }
            | Fact::SnapshotFailed { .. }
            | Fact::ReportRequested { .. }
            | Fact::Retried { .. }
            | Fact::Decided { .. }
            | Fact::StopRequested { .. }
            | Fact::Hinted { .. } => self.work(RunActivity::Steps),
        }
    }

    // Begins an activity of a run at work.
    fn work(&mut self, activity: RunActivity) {
        self.status = RunStatus::Active;
        self.parked_at = None;
        self.clock.begin(activity);
    }

    fn step_gate(&mut self, entry: &JournalEntry) {
        match entry.fact.gate_step() {
            GateStep::Asked { head, .. } => self.asked = Some(head.clone()),
            GateStep::Opened => {
                let position = entry.position;
                self.gate = self.asked.clone().map(|head| PendingDecision { position, head });
            }
            GateStep::Closed => self.gate = None,
            GateStep::Unchanged => {}
        }
    }

    // Requests that ask people nothing leave the questions, because a run may send one before it waits.
    fn keep_questions(&mut self, fact: &Fact) {
        let Fact::ReportRequested { request, .. } = fact else {
            return;
        };
        if let OutboundAction::QuestionAsked(asked) = request {
            self.questions = asked.questions.iter().map(shorten_question).collect();
        } else if let OutboundAction::PlanProposed(proposed) = request {
            self.questions = vec![shorten_question(&TicketQuestion {
                text: proposed.plan.goal.clone(),
                options: Vec::new(),
            })];
        } else if request.asks_about().is_some() {
            self.questions.clear();
        }
    }

    fn count(&mut self, fact: &Fact) {
        if let Some(charge) = fact.charge() {
            self.spend.add(charge.reply);
        }
    }

    fn received(&mut self, receipt: &OutboundReceipt) {
        match receipt {
            OutboundReceipt::Pushed { branch, .. } => self.branch = Some(branch.clone()),
            OutboundReceipt::PullRequestOpened(opened) => {
                self.branch = Some(opened.branch.clone());
                if self.pull_requests.len() < PULL_REQUESTS && !self.pull_requests.contains(opened) {
                    self.pull_requests.push(opened.clone());
                }
            }
            // These receipts name nothing that lasts.
            OutboundReceipt::DecisionAsked { .. }
            | OutboundReceipt::Told
            | OutboundReceipt::Started { .. }
            | OutboundReceipt::Rehearsed { .. } => {}
        }
    }
}

/// Returns the title of the request; empty for an event of a pull request.
fn summarize_title(trigger: &Trigger) -> String {
    let TriggerReason::JobRequested(request) = &trigger.reason else {
        return String::new();
    };
    request.text.summary.chars().take(TITLE_CHARS).collect()
}

/// Returns the question with a limited length, because lists contain the overviews of many runs.
fn shorten_question(question: &TicketQuestion) -> TicketQuestion {
    let options = question.options.iter().take(OPTIONS);
    TicketQuestion {
        text: truncate_text(&question.text, QUESTION_CHARS),
        options: options
            .map(|option| truncate_text(option, OPTION_CHARS))
            .collect(),
    }
}

/// Activity of the run at its last entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunActivity {
    #[default]
    Steps,
    Model,
    Tools,
    Waiting,
}

/// Current activity of a run with its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ActivityClock {
    at: RunActivity,
    since: Timestamp,
}

impl ActivityClock {
    /// Adds the time until now to the counter of the current activity.
    fn count(&mut self, now: Timestamp, spent: &mut TimeSpent) {
        let passed = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let to = match self.at {
            RunActivity::Steps => None,
            RunActivity::Model => Some(&mut spent.model_ms),
            RunActivity::Tools => Some(&mut spent.tools_ms),
            RunActivity::Waiting => Some(&mut spent.waiting_ms),
        };
        if let Some(to) = to {
            *to = to.saturating_add(passed);
        }
        self.since = now;
    }

    /// Begins an activity, which ends the previous one.
    const fn begin(&mut self, activity: RunActivity) {
        self.at = activity;
    }
}

#[cfg(test)]
mod tests;
