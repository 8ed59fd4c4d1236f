//! Report of checks that failed for reasons outside of the change: the failed jobs run again.

use domain::report::ChecksRerun;

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_checks_result};
use crate::{effects, message, rounds::ChecksResult};

impl ReportKind for ChecksRerun {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        let rerun = Box::new(effects::RerunChecks {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
            runs: self.runs.clone(),
        });
        let page = self.failed.first().map_or("", |check| check.url.as_str());
        vec![
            rerun,
            show_checks_result(&self.pull_request, &self.head, ChecksResult::Failed, page),
        ]
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        message::checks_rerun(&self.pull_request, &self.failed, told.made.rerun.as_ref())
    }
}
