//! A pull request of ours waits for a review.

use domain::{TicketKey, report::ReviewAwaited};

use super::{Heard, Kind, Told};
use crate::{effects::Thread, message};

impl Kind for ReviewAwaited {
    /// It calls people.
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    /// Where they would review.
    fn thread(&self, _: &TicketKey) -> Thread {
        Thread::on(&self.pull_request)
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::review_awaited(self)]
    }
}
