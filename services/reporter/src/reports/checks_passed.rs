//! Report of passed checks: hand over to the reviewers.

use domain::report::ChecksPassed;

use super::{Asked, Effects, Kind, Told, checked};
use crate::{board::Mark, effects::{MarkReady, RequestReview}, message, rounds::Checked};

impl Kind for ChecksPassed {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects: Effects = vec![Box::new(MarkReady {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
        })];
        // The order matters: a ticket moves to review only after its pull request is ready.
        effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
        effects.push(Box::new(RequestReview {
            pull_request: self.pull_request.clone(),
            of: None,
        }));
        effects.push(checked(&self.pull_request, &self.head, Checked::Passed, &self.page));
        effects
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Done)
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::ready(&self.pull_request)]
    }
}
