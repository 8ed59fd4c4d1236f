//! Report of a request that causes no work.

use domain::{SkipReason, TicketKey};

use super::{Heard, Kind, Told};
use crate::{board::Mark, effects::Thread, message};

impl Kind for SkipReason {
    /// An unauthorized request is answered where it was made, and the status comment stays unchanged.
    fn heard(&self) -> Heard {
        match self {
            Self::MayNotAsk { .. } => Heard::Apart,
            _ => Heard::InStatus,
        }
    }

    fn thread(&self, ticket: &TicketKey) -> Thread {
        match self {
            Self::MayNotAsk { on: Some(ours), .. } => Thread::GitHub(ours.repository.clone(), ours.number),
            _ => Thread::of(ticket),
        }
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
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
            | Self::Unreadable => Some(Mark::Stopped),
        }
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::skipped(self, &told.try_again())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    #[test]
    fn unclear_decision_leaves_mark_of_run() {
        let ticket = TicketKey::jira("ENG-12").unwrap();
        let made = Made::default();
        let told = Told {
            made: &made,
            ticket: &ticket,
            run: None,
            again: "To Do",
        };
        let unclear = SkipReason::UnclearDecision {
            heads: vec!["0123456789ab".to_owned()],
        };
        assert_eq!(unclear.mark(&told), None, "the run waits on");
        assert_eq!(SkipReason::NoIssues.mark(&told), Some(Mark::Stopped));
    }
}
