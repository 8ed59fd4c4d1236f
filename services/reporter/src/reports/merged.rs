//! A person merged: the ticket is done.

use domain::{PullRequestStatus, report::Merged};

use super::{Asked, Effects, Kind, Told};
use crate::{effects::RecordEnd, message};

impl Kind for Merged {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects: Effects = vec![Box::new(RecordEnd {
            pull_request: self.pull_request.clone(),
            status: PullRequestStatus::Merged,
        })];
        effects.extend(asked.done());
        effects
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::merged(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
