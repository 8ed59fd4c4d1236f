//! Report of a pull request that a person closed without merging it.

use domain::{PullRequestStatus, report::PullRequestClosed};

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{board::WorkEnd, effects::RecordEnd, message};

impl ReportKind for PullRequestClosed {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(RecordEnd {
            pull_request: self.pull_request.clone(),
            status: PullRequestStatus::Closed,
        })]
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Stopped)
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        vec![
            message::render_closed(&self.by, &self.pull_request),
            told.try_again(),
        ]
    }
}
