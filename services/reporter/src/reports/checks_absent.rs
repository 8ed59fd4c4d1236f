//! Report that no check reports: hand over to the reviewers, or wait for a configured check.

use domain::report::ChecksMissing;

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_checks_result};
use crate::{board::WorkEnd, effects::MarkReadyUnchecked, message, rounds::ChecksResult};

impl ReportKind for ChecksMissing {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects: EffectList = vec![Box::new(MarkReadyUnchecked {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
            required: asked.rules.ci.required,
        })];
        effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
        effects.push(show_checks_result(
            &self.pull_request,
            &self.head,
            ChecksResult::Absent,
            "",
        ));
        effects
    }

    fn mark(&self, told: &NoticeContext<'_>) -> Option<WorkEnd> {
        told.made.awaited.is_none().then_some(WorkEnd::Done)
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        vec![message::render_unchecked(
            &self.pull_request,
            told.made.awaited.as_deref(),
        )]
    }
}
