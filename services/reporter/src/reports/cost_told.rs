//! Report of a ticket's cost, for a person who requested it.

use domain::{TicketKey, report::CostReply};

use super::{NoticeContext, NoticePlace, ReportKind};
use crate::{effects::CommentThread, message};

impl ReportKind for CostReply {
    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        match &self.on {
            Some(on) => CommentThread::GitHub(on.repository.clone(), on.number),
            None => CommentThread::of(ticket),
        }
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_cost(&self.cost)
    }
}
