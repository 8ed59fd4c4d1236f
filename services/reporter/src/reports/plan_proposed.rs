//! Report of a plan that a person has to decide about.

use domain::report::PlanProposed;

use super::{NoticeContext, NoticePlace, ReportKind};
use crate::message;

impl ReportKind for PlanProposed {
    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        message::render_plan(&self.repository, &self.id, &self.plan, told.run)
    }
}
