//! A pull request of somebody was reviewed.

use domain::{PullRequestRef, Reactable, Reaction, report::PullRequestReviewed};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::effects::{React, SubmitReview};

impl Kind for PullRequestReviewed {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(SubmitReview(self.clone()))]
    }

    /// Whoever looks at the list of pull requests sees that the review is there.
    fn afterwards(&self, _: &Asked<'_>) -> Effects {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        vec![Box::new(React {
            to: Reactable::issue(repository, *number),
            reaction: Reaction::Rocket,
        })]
    }

    /// The review says it.
    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }
}
