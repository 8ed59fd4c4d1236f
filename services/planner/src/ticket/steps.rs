//! The steps under way, one per lane at most.

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

use crate::driver::{Outcome, Trouble};

type Step = AbortOnDropHandle<Result<Outcome, Trouble>>;

/// Steps of several runs that go on side by side, each in a task of its own: they go on while the session waits for NATS,
/// or a model's reply would meanwhile run into its time limits and be paid for again. Dropping this cancels all of them.
#[derive(Default)]
pub(super) struct Steps {
    under_way: Vec<(RunId, Step)>,
}

impl Steps {
    /// Begins a step of a run, which has none under way.
    pub(super) fn begin(
        &mut self,
        run: RunId,
        step: impl Future<Output = Result<Outcome, Trouble>> + Send + 'static,
    ) {
        let step = AbortOnDropHandle::new(tokio::spawn(step.in_current_span()));
        self.under_way.push((run, step));
    }

    /// Ends the step of a run, if one is under way; nothing of it happens after this returns.
    pub(super) async fn cut(&mut self, run: &RunId) {
        if let Some(place) = self.under_way.iter().position(|(other, _)| other == run) {
            let (_, step) = self.under_way.remove(place);
            step.abort();
            drop(step.await);
        }
    }

    pub(super) fn has(&self, run: &RunId) -> bool {
        self.under_way.iter().any(|(other, _)| other == run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The next outcome; waits forever when nothing is under way. Safe to cancel.
    pub(super) async fn next(&mut self) -> (RunId, Result<Outcome, Trouble>) {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(RunId, Result<Outcome, Trouble>)> {
        for place in 0..self.under_way.len() {
            if let Poll::Ready(ended) = Pin::new(&mut self.under_way[place].1).poll(context) {
                let (run, _) = self.under_way.remove(place);
                return Poll::Ready((run, ended.unwrap_or_else(broken)));
            }
        }
        Poll::Pending
    }
}

/// A step that panicked takes the session with it, as if it were part of it. Only the runtime's end cancels a step here.
fn broken(error: JoinError) -> Result<Outcome, Trouble> {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Err(Trouble::Lost),
    }
}
