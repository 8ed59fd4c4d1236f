//! Report of a review of another author's pull request.

use domain::{PullRequestRef, Reactable, Reaction, report::PullRequestReviewed};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::effects::{React, SubmitReview};

impl Kind for PullRequestReviewed {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(SubmitReview(self.clone()))]
    }

    /// Adds a rocket reaction, which lists of pull requests show.
    fn afterwards(&self, _: &Asked<'_>) -> Effects {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        vec![Box::new(React {
            to: Reactable::issue(repository, *number),
            reaction: Reaction::Rocket,
        })]
    }

    /// The review itself is the notification.
    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }
}
