//! The row of a ticket: folded triggers, pending triggers and runs. Every change is a single compare-and-set.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{ids::RunId, time::Timestamp},
    journal::{
        fence::RunFence,
        kind::RecordKind,
        record_format::StoredRecord,
        stop::{StopReason, TicketDeparture},
        wait_condition::WaitCondition,
    },
    trigger::{
        job::{Job, Lane},
        pull_request::PullRequestRef,
    },
};

/// The row of a ticket.
// The row is a cache: journals and triggers rebuild it when it is unreadable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketRow {
    /// The highest fence that took over the ticket.
    pub fence: RunFence,
    /// Stream sequence of the last folded trigger.
    pub cursor: u64,
    /// Triggers whose run is not finished, oldest first.
    pub pending: Vec<PendingRun>,
    /// Active runs, and the last finished ones (at most [`TicketRow::KEPT_RUNS`]), oldest first.
    pub runs: Vec<RunSummary>,
    /// The pull requests opened for the ticket.
    pub pull_requests: Vec<PullRequestRef>,
    /// Time of the ticket's timer, if one is set.
    pub due: Option<Timestamp>,
    /// Number of takeovers since the last progress.
    pub takeovers: u32,
    /// Number of runs opened so far, including those that left `runs`. No reset changes it.
    #[serde(default)]
    pub opened: u32,
    /// Reason for the quarantine of the ticket, if it is quarantined.
    pub quarantined: Option<String>,
    /// Departure of the ticket from its place, if it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<TicketDeparture>,
}

impl StoredRecord for TicketRow {
    const KIND: RecordKind = RecordKind::Row;
}

/// A trigger that opened a run which is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRun {
    /// Stream sequence of the trigger.
    pub sequence: u64,
    /// The run that it opens.
    pub run: RunId,
    /// The kind of work.
    pub job: Job,
    /// The lane in which the run waits.
    pub lane: Lane,
    // A change waits for every older active run of its repository on the same branch. A run with an unknown
    // branch blocks all of them, so the order of age needs no locks.
    /// The branch of the run in a change lane; absent while the run may use any branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl PendingRun {
    /// Creates the entry of a run that waits in a lane. Its trigger's sequence is that of the run.
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

/// Summary of a run for listings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Id of the run.
    pub id: RunId,
    /// The kind of work.
    pub job: Job,
    /// Status of the run.
    pub status: RunStatus,
    /// Time at which its trigger was folded.
    pub started_at: Timestamp,
    /// Time of its end.
    pub finished_at: Option<Timestamp>,
    /// Number of model turns so far.
    pub turns: u32,
}

/// Status of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunStatus {
    /// The run waits in its lane.
    Queued,
    /// A planner works on the run.
    Active,
    /// The run waits for an event, and any planner may continue it.
    Parked {
        /// The event that ends the wait.
        waits_for: WaitCondition,
    },
    /// The run is finished.
    Finished {
        /// Reason for its end.
        reason: StopReason,
    },
}

impl TicketRow {
    /// Maximum takeovers without progress. A ticket with more is quarantined.
    pub const MOST_TAKEOVERS: u32 = 5;
    /// Maximum number of finished runs in the row.
    pub const KEPT_RUNS: usize = 20;

    /// Returns true when the ticket is a pull request of another author: its runs review it or answer questions about it.
    pub fn is_review(&self) -> bool {
        let jobs = || self.runs.iter().map(|run| run.job);
        self.pull_requests.is_empty()
            && jobs().any(|job| job == Job::Review)
            && jobs().all(|job| matches!(job, Job::Review | Job::Answer))
    }

    /// Returns the summary of a run.
    pub fn run(&self, id: &RunId) -> Option<&RunSummary> {
        self.runs.iter().find(|run| run.id == *id)
    }

    /// Returns the mutable summary of a run.
    pub fn run_mut(&mut self, id: &RunId) -> Option<&mut RunSummary> {
        self.runs.iter_mut().find(|run| run.id == *id)
    }

    /// Returns the active runs that wait for the timer of a retry, oldest first.
    pub fn waiting_for_retry(&self) -> impl Iterator<Item = &RunSummary> {
        let waits = RunStatus::Parked {
            waits_for: WaitCondition::Retry,
        };
        self.runs.iter().filter(move |run| run.status == waits)
    }

    /// Queues the runs again that wait for a slot.
    pub fn stop_waiting_for_slots(&mut self) {
        for run in &mut self.runs {
            if matches!(
                run.status,
                RunStatus::Parked {
                    waits_for: WaitCondition::Slot
                }
            ) {
                run.status = RunStatus::Queued;
            }
        }
    }

    /// Adds the run that a trigger opens. A known run changes nothing.
    pub fn open(&mut self, pending: PendingRun, at: Timestamp) {
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

    /// Sets the branch of an active run.
    pub fn set_branch(&mut self, run: &RunId, branch: &str) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.run == *run) {
            pending.branch = Some(branch.to_owned());
        }
    }

    /// Marks a run as finished: it leaves `pending`, and the oldest finished summaries leave `runs`.
    pub fn finish(&mut self, run: &RunId, reason: StopReason, at: Timestamp) {
        self.pending.retain(|pending| pending.run != *run);
        if let Some(summary) = self.run_mut(run) {
            summary.status = RunStatus::Finished { reason };
            summary.finished_at = Some(at);
        }
        // Active runs always remain. Only finished ones count against the limit.
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
