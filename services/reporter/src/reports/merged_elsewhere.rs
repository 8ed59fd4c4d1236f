//! A pull request of somebody else was merged that names the ticket.

use domain::report::MergedElsewhere;

use super::{Asked, Effects, Kind, Told};
use crate::message;

impl Kind for MergedElsewhere {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        asked.done().into_iter().collect()
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::merged_elsewhere(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
