//! Report of started work.

use domain::{Job, report::WorkStarted};

use super::{Asked, Effects, Heard, Kind, Told, shows};
use crate::{board::Lasting, message, rounds::RoundEvent};

impl Kind for WorkStarted {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects = Effects::new();
        // Work on an existing pull request leaves the status of its ticket unchanged.
        if self.job == Job::Implement {
            let moved = asked.moved(&[&asked.rules.agent.in_progress_status]);
            effects.extend(asked.assigned().into_iter().chain(moved));
        }
        if matches!(self.job, Job::Implement | Job::FixCi | Job::AddressReview) {
            effects.push(shows(&self.repository, RoundEvent::Begun(self.begun.clone())));
        }
        effects
    }

    fn heard(&self) -> Heard {
        Heard::AtStart
    }

    fn lasting(&self, _: &Told<'_>) -> Lasting {
        match self.job {
            Job::Implement if !self.begun.is_again => Lasting::nothing(),
            _ => Lasting::default(),
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::started(self.job, &self.repository, &self.begun)]
    }
}
