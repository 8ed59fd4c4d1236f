//! Work starts.

use domain::{Job, report::WorkStarted};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{board::Lasting, message};

impl Kind for WorkStarted {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        // What goes on with a pull request leaves its ticket where it is.
        if self.job != Job::Implement {
            return Effects::new();
        }
        let moved = asked.moved(&[&asked.rules.agent.in_progress_status]);
        moved.into_iter().collect()
    }

    fn heard(&self) -> Heard {
        Heard::AtStart
    }

    fn lasting(&self, _: &Told<'_>) -> Lasting {
        match self.job {
            Job::Implement => Lasting::nothing(),
            _ => Lasting::default(),
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::started(self.job, &self.repository)]
    }
}
