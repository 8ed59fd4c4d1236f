//! Report of a reaction: work has begun, or is done.

use domain::report::ReactionRequest;

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::effects;

impl ReportKind for ReactionRequest {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(effects::AddReaction {
            to: self.to.clone(),
            reaction: self.reaction,
        })]
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }
}
