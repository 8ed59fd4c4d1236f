//! The steps under way, one per lane at most.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use domain::RunId;

use crate::driver::{Outcome, Trouble};

type Step<'a> = Pin<Box<dyn Future<Output = Result<Outcome, Trouble>> + Send + 'a>>;

/// Steps of several runs that go on side by side within one task, so that dropping this cancels all of them at once.
#[derive(Default)]
pub(super) struct Steps<'a> {
    under_way: Vec<(RunId, Step<'a>)>,
}

impl<'a> Steps<'a> {
    /// Begins a step of a run, which has none under way.
    pub(super) fn begin(
        &mut self,
        run: RunId,
        step: impl Future<Output = Result<Outcome, Trouble>> + Send + 'a,
    ) {
        self.under_way.push((run, Box::pin(step)));
    }

    /// Drops the step of a run, if one is under way.
    pub(super) fn cut(&mut self, run: &RunId) {
        self.under_way.retain(|(other, _)| other != run);
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
            if let Poll::Ready(outcome) = self.under_way[place].1.as_mut().poll(context) {
                let (run, _) = self.under_way.remove(place);
                return Poll::Ready((run, outcome));
            }
        }
        Poll::Pending
    }
}
