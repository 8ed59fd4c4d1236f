//! A person merged: the ticket is done.

use domain::{PullRequestStatus, report::Merged};

use super::{Asked, Effects, Kind, Told};
use crate::{effects::RecordEnd, message};

/// What workflows call the last status, where the rules name none that can be reached.
const USUAL: [&str; 5] = ["done", "closed", "complete", "completed", "resolved"];

impl Kind for Merged {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let configured = asked.rules.agent.done_status.as_str();
        let goals: Vec<&str> = std::iter::once(configured).chain(USUAL).collect();
        let mut effects: Effects = vec![Box::new(RecordEnd {
            pull_request: self.pull_request.clone(),
            status: PullRequestStatus::Merged,
        })];
        effects.extend(asked.moved(&goals));
        effects
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::merged(&self.by, &self.pull_request, told.made.moved.as_ref())
    }
}
