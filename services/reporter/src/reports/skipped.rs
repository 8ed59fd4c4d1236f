//! Nothing is done.

use domain::SkipReason;

use super::{Kind, Told};
use crate::message;

impl Kind for SkipReason {
    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::skipped(self, &told.try_again())
    }
}
