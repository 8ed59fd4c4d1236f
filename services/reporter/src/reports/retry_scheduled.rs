//! Report of a run that failed temporarily and will be retried.

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
