//! Work starts.

use domain::{Job, report::WorkStarted};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::message;

impl Kind for WorkStarted {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        // What goes on with a pull request leaves its ticket where it is.
        let moved = asked.moved(&[&asked.rules.agent.in_progress_status]);
        moved
            .filter(|_| self.job == Job::Implement)
            .into_iter()
            .collect()
    }

    fn heard(&self) -> Heard {
        Heard::AtStart
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::started(self.job, &self.repository)]
    }
}
