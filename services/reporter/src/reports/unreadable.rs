//! Report of an unreadable record about the ticket.

use domain::report::UnreadableRecordNotice;

use super::{NoticeContext, ReportKind};
use crate::{board::WorkEnd, message};

impl ReportKind for UnreadableRecordNotice {
    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Failed)
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_unreadable(&self.what.to_string(), self.is_poison)
    }
}
