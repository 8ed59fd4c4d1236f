//! The ticket's row: what is folded, what is pending, what runs. It changes in one compare-and-set.

use serde::{Deserialize, Serialize};

use crate::{
    Job, Lane, PullRequestRef, RecordKind, RunFence, RunId, StopReason, Stored, Timestamp, WaitsFor,
};

/// A ticket's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The highest fence that took the ticket over.
    pub fence: RunFence,
    /// Stream sequence of the last trigger that is folded in.
    pub cursor: u64,
    /// Triggers whose run is not finished, oldest first.
    pub pending: Vec<Pending>,
    /// Live runs, and the last finished ones (at most [`Row::KEPT_RUNS`]), oldest first.
    pub runs: Vec<RunSummary>,
    /// The pull requests opened for the ticket.
    pub pull_requests: Vec<PullRequestRef>,
    /// When the ticket's timer is due, when one is set.
    pub due: Option<Timestamp>,
    /// Takeovers since the last progress.
    pub takeovers: u32,
    /// Runs opened so far, those that left `runs` included; no reset touches it.
    #[serde(default)]
    pub opened: u32,
    /// Why the ticket is quarantined, when it is.
    pub quarantined: Option<String>,
}

impl Stored for Row {
    const KIND: RecordKind = RecordKind::Row;
}

/// A trigger that opened a run which is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Stream sequence of the trigger.
    pub sequence: u64,
    /// The run it opens.
    pub run: RunId,
    /// The kind of work.
    pub job: Job,
    /// Where the run waits for its turn.
    pub lane: Lane,
    /// In a lane of changes, the branch that the run works on; absent while that may be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl Pending {
    /// A run that waits in a lane, named after its trigger.
    pub fn new(run: RunId, job: Job, lane: Lane) -> Self {
        Self {
            sequence: run.sequence(),
            run,
            job,
            lane,
            branch: None,
        }
    }
}

/// A run as listings show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// The kind of work.
    pub job: Job,
    /// Where it stands.
    pub status: RunStatus,
    /// When its trigger was folded in.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Model turns so far.
    pub turns: u32,
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits for its turn in its lane.
    Queued,
    /// A planner works on it.
    Active,
    /// It waits for a report or a decision and holds nothing.
    Parked {
        /// What for.
        waits_for: WaitsFor,
    },
    /// It is over.
    Finished {
        /// Why.
        reason: StopReason,
    },
}

impl Row {
    /// Takeovers in a row without progress after which a ticket is quarantined.
    pub const MOST_TAKEOVERS: u32 = 5;
    /// How many finished runs stay in the row.
    pub const KEPT_RUNS: usize = 20;

    /// The summary of one run.
    pub fn run(&self, id: &RunId) -> Option<&RunSummary> {
        self.runs.iter().find(|run| run.id == *id)
    }

    /// The summary of one run, to change it.
    pub fn run_mut(&mut self, id: &RunId) -> Option<&mut RunSummary> {
        self.runs.iter_mut().find(|run| run.id == *id)
    }

    /// The live runs that wait for a timer before they try again, oldest first.
    pub fn waiting_for_retry(&self) -> impl Iterator<Item = &RunSummary> {
        let waits = RunStatus::Parked {
            waits_for: WaitsFor::Retry,
        };
        self.runs.iter().filter(move |run| run.status == waits)
    }

    /// Lets the runs that wait for a slot try again.
    pub fn stop_waiting_for_slots(&mut self) {
        for run in &mut self.runs {
            if matches!(
                run.status,
                RunStatus::Parked {
                    waits_for: WaitsFor::Slot
                }
            ) {
                run.status = RunStatus::Queued;
            }
        }
    }

    /// Records a run that a trigger opens. One that is known already changes nothing.
    pub fn open(&mut self, pending: Pending, at: Timestamp) {
        if self.run(&pending.run).is_some() {
            return;
        }
        self.opened += 1;
        self.runs.push(RunSummary {
            id: pending.run.clone(),
            job: pending.job,
            status: RunStatus::Queued,
            started_at: at,
            finished_at: None,
            turns: 0,
        });
        self.pending.push(pending);
    }

    /// Records the branch that a live run works on.
    pub fn set_branch(&mut self, run: &RunId, branch: &str) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.run == *run) {
            pending.branch = Some(branch.to_owned());
        }
    }

    /// Records the end of a run: it leaves `pending`, and the oldest finished summaries leave `runs`.
    pub fn finish(&mut self, run: &RunId, reason: StopReason, at: Timestamp) {
        self.pending.retain(|pending| pending.run != *run);
        if let Some(summary) = self.run_mut(run) {
            summary.status = RunStatus::Finished { reason };
            summary.finished_at = Some(at);
        }
        let finished = |run: &RunSummary| matches!(run.status, RunStatus::Finished { .. });
        let mut surplus = self
            .runs
            .iter()
            .filter(|run| finished(run))
            .count()
            .saturating_sub(Self::KEPT_RUNS);
        self.runs.retain(|run| {
            let drop_it = surplus > 0 && finished(run);
            surplus -= usize::from(drop_it);
            !drop_it
        });
    }
}
