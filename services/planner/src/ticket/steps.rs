//! Running steps of a ticket, at most one per lane.

use std::{
    future::poll_fn,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll},
};

use domain::RunId;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::driver::{StepOutcome, TicketError};

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
    pub(super) async fn cut(&mut self, run: &RunId) {
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
