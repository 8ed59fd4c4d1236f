//! Nothing is done.

use domain::SkipReason;

use super::{Kind, Told};
use crate::{board::Mark, message};

impl Kind for SkipReason {
    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Stopped)
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::skipped(self, &told.try_again())
    }
}
