//! Report of our pull request that waits for a review.

use domain::{TicketKey, report::ReviewAwaited};

use super::{NoticeContext, NoticePlace, ReportKind};
use crate::{effects::CommentThread, message};

impl ReportKind for ReviewAwaited {
    /// A separate comment, because it notifies people.
    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    /// Returns the pull request's thread.
    fn thread(&self, _: &TicketKey) -> CommentThread {
        CommentThread::on(&self.pull_request)
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::review_awaited(self)]
    }
}
