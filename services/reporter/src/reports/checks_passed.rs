//! Report of passed checks: hand over to the reviewers.

use domain::report::ChecksPassed;

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_checks_result};
use crate::{
    board::WorkEnd,
    effects::{MarkReady, RequestReview},
    message,
    rounds::ChecksResult,
};

impl ReportKind for ChecksPassed {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects: EffectList = vec![Box::new(MarkReady {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
        })];
        // The order matters: a ticket moves to review only after its pull request is ready.
        effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
        effects.push(Box::new(RequestReview {
            pull_request: self.pull_request.clone(),
            of: None,
        }));
        effects.push(show_checks_result(
            &self.pull_request,
            &self.head,
            ChecksResult::Passed,
            &self.page,
        ));
        effects
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Done)
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::render_ready(&self.pull_request)]
    }
}
