//! Report of a run that failed temporarily and will be retried.

use domain::report::RetryScheduled;

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_failed_try};
use crate::message;

impl ReportKind for RetryScheduled {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![show_failed_try(None, &self.reason)]
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::retry_scheduled(self.job, &self.reason, (self.attempt, self.most), self.due)
    }
}
