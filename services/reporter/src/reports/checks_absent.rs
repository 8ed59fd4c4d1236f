//! No check reports: over to the reviewers, or it waits for one that is configured.

use domain::report::ChecksAbsent;

use super::{Asked, Effects, Kind, Told};
use crate::{effects::MarkReadyUnchecked, message};

impl Kind for ChecksAbsent {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects: Effects = vec![Box::new(MarkReadyUnchecked {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
            required: asked.rules.ci.required,
        })];
        effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
        effects
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        vec![message::unchecked(&self.pull_request, told.made.awaited.as_deref())]
    }
}
