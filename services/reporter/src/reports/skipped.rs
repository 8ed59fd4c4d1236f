//! Report of a request that causes no work.

use domain::{SkipReason, TicketKey};

use super::{NoticeContext, NoticePlace, ReportKind};
use crate::{board::WorkEnd, effects::CommentThread, message};

impl ReportKind for SkipReason {
    /// An unauthorized request is answered where it was made, and the status comment stays unchanged.
    fn heard(&self) -> NoticePlace {
        match self {
            Self::MayNotAsk { .. } => NoticePlace::Apart,
            _ => NoticePlace::InStatus,
        }
    }

    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        match self {
            Self::MayNotAsk { on: Some(ours), .. } => {
                CommentThread::GitHub(ours.repository.clone(), ours.number)
            }
            _ => CommentThread::of(ticket),
        }
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        match self {
            // The run still waits for the decision, or the pull request for its checks.
            Self::MayNotAsk { .. } | Self::UnclearDecision { .. } | Self::ChecksWait { .. } => None,
            Self::NotAllowed { .. }
            | Self::NoWritePermission { .. }
            | Self::Bot { .. }
            | Self::Phrase { .. }
            | Self::Label { .. }
            | Self::PullRequestExists { .. }
            | Self::StatusLeft { .. }
            | Self::TextChanged { .. }
            | Self::UnclearRepository { .. }
            | Self::NoIssues
            | Self::Unreadable => Some(WorkEnd::Stopped),
        }
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        message::render_skip(self, &told.try_again())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::EffectReceipts;

    #[test]
    fn unclear_decision_leaves_mark_of_run() {
        let ticket = TicketKey::jira("ENG-12").unwrap();
        let told = NoticeContext {
            receipts: &EffectReceipts::default(),
            unmoved: None,
            ticket: &ticket,
            run: None,
            again: "To Do",
        };
        let unclear = SkipReason::UnclearDecision {
            heads: vec!["0123456789ab".to_owned()],
        };
        assert_eq!(unclear.mark(&told), None, "the run waits on");
        assert_eq!(SkipReason::NoIssues.mark(&told), Some(WorkEnd::Stopped));
    }
}
