//! A run as people see it: the one fold of a journal for everything that shows, lists or counts runs.
//!
//! The planner folds the same journal into what it needs to go on. What people see must not depend on that, so that a
//! planner of another release changes nothing here.

mod clock;

use serde::{Deserialize, Serialize};

use self::clock::Clock;
use crate::{
    Amount, CommitId, Dollars, Entry, Fact, GateStep, Job, Phase, PhaseOutput, PullRequestRef, Reason,
    Receipt, RecordKind, ReportOutcome, RepositoryName, RunId, RunStatus, RunSummary, Source, Stored,
    Timestamp, Trigger, Usage, check::Level,
};

/// The longest title, in characters.
const TITLE_CHARS: usize = 200;
/// The most pull requests that are listed.
const PULL_REQUESTS: usize = 10;

/// A run as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// The run.
    pub run: RunId,
    /// The kind of work.
    pub job: Job,
    /// Where it works; absent: it needs no repository, or none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    /// The ticket's first line as it was when work was asked for; empty where the request had none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Who asked for it, as the outside names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The door that the request came through.
    pub source: Source,
    /// Where it stands. Never queued: a run that has not begun has no journal.
    pub status: RunStatus,
    /// What its last conversation with the model is for; absent: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Where it waits for a person's decision; absent: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// When its first entry was written.
    pub started_at: Timestamp,
    /// When its last entry was written.
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Turns of the model.
    #[serde(default)]
    pub turns: u32,
    /// Tools that ran.
    #[serde(default)]
    pub tool_calls: u32,
    /// Tries after failures that may pass.
    #[serde(default)]
    pub retries: u32,
    /// Planners that took it over from another one.
    #[serde(default)]
    pub takeovers: u32,
    /// What models took, as far as prices are known.
    #[serde(default)]
    pub spend: Spend,
    /// Where its time went.
    #[serde(default)]
    pub time: TimeSpent,
    /// How strong the evidence for its change is; absent: none was sought yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Level>,
    /// The branch that it pushed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Pull requests that it opened, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_requests: Vec<PullRequestRef>,
    /// The name of the last fact.
    pub last: String,
    /// How many entries are folded in.
    pub entries: u64,
    /// What it asked a person about last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<CommitId>,
    #[serde(default)]
    clock: Clock,
}

/// Where a run waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Position of the entry that says so.
    pub position: u64,
    /// The commit or plan that is decided about.
    pub head: CommitId,
}

impl Gate {
    /// The key of the one decision that it takes, through whatever door.
    pub fn key(&self, run: &RunId) -> String {
        format!("decision:{run}:{}", self.position)
    }
}

/// What models took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Money, as far as prices are known.
    pub cost_usd: Dollars,
    /// Tokens read and written.
    pub tokens: u64,
    /// Of them, what models read that their provider had not kept.
    #[serde(default)]
    pub input_tokens: u64,
    /// What they read that it had kept.
    #[serde(default)]
    pub cached_tokens: u64,
    /// What they wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Replies without a known price.
    pub unpriced: u32,
}

/// Where the time of a run went. What is left to its whole time are short steps between these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// Models thought, in milliseconds.
    pub model_ms: u64,
    /// Tools and checks ran, in milliseconds.
    pub tools_ms: u64,
    /// It waited for people, reports, slots or a retry, in milliseconds.
    pub waiting_ms: u64,
}

impl Stored for Overview {
    const KIND: RecordKind = RecordKind::Overview;
}

impl Overview {
    /// Of a run with this journal; `None` when its first entry is missing.
    pub fn of<'a>(run: &RunId, entries: impl IntoIterator<Item = &'a Entry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let mut overview = Self::begin(run, entries.next()?)?;
        for entry in entries {
            overview.apply(entry);
        }
        Some(overview)
    }

    /// Of a run that has begun; `None` when this is not the first entry of a journal, or opens no run.
    pub fn begin(run: &RunId, first: &Entry) -> Option<Self> {
        let Fact::RunStarted { trigger } = &first.fact else {
            return None;
        };
        let (repository, title) = place(trigger);
        Some(Self {
            run: run.clone(),
            job: trigger.reason.job()?,
            repository,
            title,
            actor: trigger.actor.clone(),
            source: trigger.source,
            status: RunStatus::Active,
            phase: None,
            gate: None,
            started_at: first.at,
            updated_at: first.at,
            finished_at: None,
            turns: 0,
            tool_calls: 0,
            retries: 0,
            takeovers: 0,
            spend: Spend::default(),
            time: TimeSpent::default(),
            evidence: None,
            branch: None,
            pull_requests: Vec::new(),
            last: first.fact.name().to_owned(),
            entries: first.position + 1,
            asked: None,
            clock: Clock::default(),
        })
    }

    /// Takes the next entry in. One that is folded in already changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        if entry.position < self.entries {
            return;
        }
        self.entries = entry.position + 1;
        self.updated_at = entry.at;
        entry.fact.name().clone_into(&mut self.last);
        self.clock.count(entry, &mut self.time);
        self.stand(entry);
        self.step_gate(entry);
        self.count(&entry.fact);
        self.note(&entry.fact);
    }

    /// The part that a ticket's row holds too.
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

    /// Whether nothing happens until a person acts.
    pub const fn waits_for_person(&self) -> bool {
        matches!(self.status, RunStatus::Parked { waits_for } if waits_for.is_for_person())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "any other fact is a step of a run at work"
    )]
    fn stand(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Parked { waits_for } => {
                self.status = RunStatus::Parked {
                    waits_for: *waits_for,
                };
            }
            Fact::RunFinished { reason } => {
                self.status = RunStatus::Finished {
                    reason: reason.clone(),
                };
                self.finished_at = Some(entry.at);
            }
            // Neither ends the wait of a parked run.
            Fact::TakenOver { .. } | Fact::NewsArrived { .. } => {}
            _ => self.status = RunStatus::Active,
        }
    }

    fn step_gate(&mut self, entry: &Entry) {
        match entry.fact.gate_step() {
            GateStep::Asked { head, .. } => self.asked = Some(head.clone()),
            GateStep::Opened => {
                let position = entry.position;
                self.gate = self.asked.clone().map(|head| Gate { position, head });
            }
            GateStep::Closed => self.gate = None,
            GateStep::Unchanged => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other facts are not counted")]
    fn count(&mut self, fact: &Fact) {
        match fact {
            Fact::ModelReplied { .. } => self.turns = self.turns.saturating_add(1),
            Fact::ToolFinished { .. } | Fact::CheckRan { .. } => {
                self.tool_calls = self.tool_calls.saturating_add(1);
            }
            Fact::RetryScheduled { .. } => self.retries = self.retries.saturating_add(1),
            Fact::TakenOver { .. } => self.takeovers = self.takeovers.saturating_add(1),
            _ => {}
        }
        if let Some(taken) = fact.taken() {
            self.spend.add(taken, fact.is_unpriced());
        }
        if let Fact::ModelReplied { reply, .. } | Fact::Summarized { reply, .. } = fact {
            self.spend.add_usage(reply.usage);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other facts change none of these")]
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::ModelRequested { phase, .. } => self.phase = Some(*phase),
            Fact::PhaseFinished {
                output: PhaseOutput::Prove { proof },
            } => self.evidence = Some(proof.level),
            Fact::ReportSettled {
                outcome: ReportOutcome::Done(receipt),
                ..
            } => self.received(receipt),
            _ => {}
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other receipts name nothing that lasts"
    )]
    fn received(&mut self, receipt: &Receipt) {
        match receipt {
            Receipt::Pushed { branch, .. } => self.branch = Some(branch.clone()),
            Receipt::PullRequestOpened(opened) => {
                self.branch = Some(opened.branch.clone());
                if self.pull_requests.len() < PULL_REQUESTS && !self.pull_requests.contains(opened) {
                    self.pull_requests.push(opened.clone());
                }
            }
            _ => {}
        }
    }
}

impl Spend {
    fn add(&mut self, taken: Amount, is_unpriced: bool) {
        let cost = Dollars::from_micros(taken.cost_micros);
        self.cost_usd = self.cost_usd.plus(cost);
        self.tokens = self.tokens.saturating_add(taken.tokens);
        self.unpriced = self.unpriced.saturating_add(u32::from(is_unpriced));
    }

    const fn add_usage(&mut self, usage: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cache_read_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
    }
}

/// The repository and the first line of the request.
fn place(trigger: &Trigger) -> (Option<RepositoryName>, String) {
    let Reason::JobRequested(request) = &trigger.reason else {
        let about = trigger.reason.pull_request();
        return (about.map(|about| about.repository.clone()), String::new());
    };
    let title = request.text.summary.chars().take(TITLE_CHARS).collect();
    (Some(request.repository.clone()), title)
}

#[cfg(test)]
mod tests;
