//! Report of a ticket that waits for an operator.

use domain::report::Quarantined;

use super::{Kind, Told};
use crate::{board::Mark, message};

impl Kind for Quarantined {
    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Failed)
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::quarantined(&self.reason)
    }
}
