//! Report of our pull request that a person reopened.

use domain::report::PullRequestReopened;

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{effects::RecordOpen, message};

impl ReportKind for PullRequestReopened {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(RecordOpen {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
        })]
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::render_reopened(&self.by, &self.pull_request)]
    }
}
