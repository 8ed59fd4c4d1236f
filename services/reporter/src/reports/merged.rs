//! Report of a merge by a person: the ticket is done.

use domain::{PullRequestStatus, report::PullRequestMerged};

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{board::WorkEnd, effects::RecordEnd, message};

impl ReportKind for PullRequestMerged {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects: EffectList = vec![Box::new(RecordEnd {
            pull_request: self.pull_request.clone(),
            status: PullRequestStatus::Merged,
        })];
        effects.extend(asked.done());
        effects.extend(asked.celebrated());
        effects
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Done)
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        message::render_merge(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
