//! Report of a merge by a person: the ticket is done.

use domain::{PullRequestStatus, report::Merged};

use super::{Asked, Effects, Kind, Told};
use crate::{board::Mark, effects::RecordEnd, message};

impl Kind for Merged {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects: Effects = vec![Box::new(RecordEnd {
            pull_request: self.pull_request.clone(),
            status: PullRequestStatus::Merged,
        })];
        effects.extend(asked.done());
        effects.extend(asked.celebrated());
        effects
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Done)
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::merged(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
