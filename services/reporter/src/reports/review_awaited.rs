//! Report of our pull request that waits for a review.

use domain::{TicketKey, report::ReviewAwaited};

use super::{Heard, Kind, Told};
use crate::{effects::Thread, message};

impl Kind for ReviewAwaited {
    /// A separate comment, because it notifies people.
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    /// Returns the pull request's thread.
    fn thread(&self, _: &TicketKey) -> Thread {
        Thread::on(&self.pull_request)
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::review_awaited(self)]
    }
}
