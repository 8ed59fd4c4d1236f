//! Report of a pull request that a person closed without merging it.

use domain::{PullRequestStatus, report::Closed};

use super::{Asked, Effects, Kind, Told};
use crate::{board::Mark, effects::RecordEnd, message};

impl Kind for Closed {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(RecordEnd {
            pull_request: self.pull_request.clone(),
            status: PullRequestStatus::Closed,
        })]
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Stopped)
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        vec![message::closed(&self.by, &self.pull_request), told.try_again()]
    }
}
