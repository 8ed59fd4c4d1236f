//! Nothing is done.

use domain::{SkipReason, TicketKey};

use super::{Heard, Kind, Told};
use crate::{board::Mark, effects::Thread, message};

impl Kind for SkipReason {
    /// Whoever may not ask hears it where they asked, and the status comment stays as it is.
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
            Self::MayNotAsk { .. } => None,
            _ => Some(Mark::Stopped),
        }
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::skipped(self, &told.try_again())
    }
}
