//! Report of a review of another author's pull request.

use domain::{PullRequestRef, ReactionKind, ReactionSubject, report::PullRequestReviewed};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::effects::{AddReaction, SubmitReview};

impl ReportKind for PullRequestReviewed {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(SubmitReview(self.clone()))]
    }

    /// Adds a rocket reaction, which lists of pull requests show.
    fn afterwards(&self, _: &PlanContext<'_>) -> EffectList {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        vec![Box::new(AddReaction {
            to: ReactionSubject::issue(repository, *number),
            reaction: ReactionKind::Rocket,
        })]
    }

    /// The review itself is the notification.
    fn heard(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }
}
