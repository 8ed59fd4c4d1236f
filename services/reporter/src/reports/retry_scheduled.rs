//! A run failed for a reason that may pass and is tried again.

use domain::report::RetryScheduled;

use super::{Asked, Effects, Kind, Told, failed};
use crate::message;

impl Kind for RetryScheduled {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![failed(None, &self.reason)]
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::retry_scheduled(self.job, &self.reason, (self.attempt, self.most), self.due)
    }
}
