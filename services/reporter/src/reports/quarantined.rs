//! Report of a ticket that waits for an operator.

use domain::report::TicketQuarantined;

use super::{NoticeContext, ReportKind};
use crate::{board::WorkEnd, message};

impl ReportKind for TicketQuarantined {
    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Failed)
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_quarantine(&self.reason)
    }
}
