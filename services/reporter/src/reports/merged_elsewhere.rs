//! Report of a merged pull request of another author that names the ticket.

use domain::report::MergedElsewhere;

use super::{Asked, Effects, Kind, Told};
use crate::{board::Mark, message};

impl Kind for MergedElsewhere {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        asked.done().into_iter().collect()
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Done)
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::merged_elsewhere(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
