//! A pull request of somebody was reviewed.

use domain::report::PullRequestReviewed;

use super::{Asked, Effects, Heard, Kind, Told};
use crate::effects::SubmitReview;

impl Kind for PullRequestReviewed {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(SubmitReview(self.clone()))]
    }

    /// The review says it.
    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }
}
