//! Report of a new phase of the model's work.

use domain::report::ProgressUpdate;

use super::{NoticeContext, NoticePlace, ReportKind};

impl ReportKind for ProgressUpdate {
    fn heard(&self) -> NoticePlace {
        NoticePlace::AsProgress
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }
}
