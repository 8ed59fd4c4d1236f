//! Report of a merged pull request of another author that names the ticket.

use domain::report::OtherPullRequestMerged;

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{board::WorkEnd, message};

impl ReportKind for OtherPullRequestMerged {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        asked.done().into_iter().collect()
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Done)
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        message::merged_elsewhere(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
