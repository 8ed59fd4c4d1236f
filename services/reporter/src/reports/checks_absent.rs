//! Report that no check reports: hand over to the reviewers, or wait for a configured check.

use domain::report::ChecksAbsent;

use super::{Asked, Effects, Kind, Told, checked};
use crate::{board::Mark, effects::MarkReadyUnchecked, message, rounds::Checked};

impl Kind for ChecksAbsent {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects: Effects = vec![Box::new(MarkReadyUnchecked {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
            required: asked.rules.ci.required,
        })];
        effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
        effects.push(checked(&self.pull_request, &self.head, Checked::Absent, ""));
        effects
    }

    fn mark(&self, told: &Told<'_>) -> Option<Mark> {
        told.made.awaited.is_none().then_some(Mark::Done)
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        vec![message::unchecked(&self.pull_request, told.made.awaited.as_deref())]
    }
}
