//! Report of repaired checks.

use domain::report::ChecksRepaired;

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{board::FinishedWork, effects::ShowFiles, message};

impl ReportKind for ChecksRepaired {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(ShowFiles {
            pull_request: Some(self.pull_request.clone()),
        })]
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_repair(self)
    }

    fn lasting(&self, told: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: None,
            changed: message::render_changed_files(told.receipts.last(), Some(&self.pull_request)),
        }
    }
}
