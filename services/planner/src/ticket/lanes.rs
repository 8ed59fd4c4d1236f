//! Lanes of a ticket: the order of its runs, and their running steps. In each lane one run at a time, in the
//! order of the triggers.

use std::{
    future::poll_fn,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll},
};

use domain::{Lane, PendingRun, RunId, RunStatus, TicketRow};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::driver::{StepOutcome, TicketError};

/// Returns the runs to drive now, at most one per lane.
///
/// A started run keeps its lane until it parks or ends. Then the oldest run follows whose branch no older
/// live run works on, parked or not; so every run gets its turn.
pub(super) fn next_runs(row: &TicketRow) -> Vec<RunId> {
    let mut lanes: Vec<&Lane> = row.pending.iter().map(|pending| &pending.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
        .into_iter()
        .filter_map(|lane| next_in_lane(row, lane))
        .collect()
}

fn next_in_lane(row: &TicketRow, lane: &Lane) -> Option<RunId> {
    let members = || row.pending.iter().filter(|pending| pending.lane == *lane);
    let is = |pending: &PendingRun, wanted: &RunStatus| {
        row.run(&pending.run).is_some_and(|run| run.status == *wanted)
    };
    let active = members().find(|pending| is(pending, &RunStatus::Active));
    let oldest =
        || members().find(|pending| is(pending, &RunStatus::Queued) && !waits_for_branch(row, pending));
    active.or_else(oldest).map(|pending| pending.run.clone())
}

fn waits_for_branch(row: &TicketRow, later: &PendingRun) -> bool {
    row.pending
        .iter()
        .take_while(|earlier| earlier.run != later.run)
        .any(|earlier| earlier.lane == later.lane && may_share_branch(earlier, later))
}

/// Returns true if two runs may work on one branch. A run with an unknown branch may work on any.
fn may_share_branch(one: &PendingRun, other: &PendingRun) -> bool {
    let known = one.branch.as_ref().zip(other.branch.as_ref());
    matches!(one.lane, Lane::Change { .. }) && known.is_none_or(|(one, other)| one == other)
}

type StepTask = AbortOnDropHandle<Result<StepOutcome, TicketError>>;

/// Steps of several runs in parallel, each in a separate task.
///
/// A step continues while the session waits for NATS. Otherwise a model's reply would reach its time limits
/// meanwhile and cost money again. Dropping this cancels all steps.
#[derive(Default)]
pub(super) struct RunningSteps {
    under_way: Vec<(RunId, StepTask)>,
}

impl RunningSteps {
    /// Starts a step of a run that has none.
    pub(super) fn begin(
        &mut self,
        run: RunId,
        step: impl Future<Output = Result<StepOutcome, TicketError>> + Send + 'static,
    ) {
        // A spawned task has no span of its own, and the calls of the step belong to the trace of the
        // ticket.
        let step = AbortOnDropHandle::new(tokio::spawn(step.in_current_span()));
        self.under_way.push((run, step));
    }

    /// Cancels the step of a run; nothing of it happens after this returns.
    pub(super) async fn cancel(&mut self, run: &RunId) {
        if let Some(place) = self.under_way.iter().position(|(other, _)| other == run) {
            let (_, step) = self.under_way.remove(place);
            step.abort();
            // The abort takes effect at the task's next await, so the session waits for its end.
            drop(step.await);
        }
    }

    pub(super) fn has(&self, run: &RunId) -> bool {
        self.under_way.iter().any(|(other, _)| other == run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns the next outcome; waits forever without a step. Cancel safe.
    pub(super) async fn next(&mut self) -> (RunId, Result<StepOutcome, TicketError>) {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(RunId, Result<StepOutcome, TicketError>)> {
        for place in 0..self.under_way.len() {
            if let Poll::Ready(ended) = Pin::new(&mut self.under_way[place].1).poll(context) {
                let (run, _) = self.under_way.remove(place);
                return Poll::Ready((run, ended.unwrap_or_else(unwrap_task)));
            }
        }
        Poll::Pending
    }
}

/// Handles a broken task. A panic in a step continues in the session. Only the end of the runtime cancels a
/// step here.
fn unwrap_task(error: JoinError) -> Result<StepOutcome, TicketError> {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Err(TicketError::Lost),
    }
}
