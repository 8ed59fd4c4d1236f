//! Work starts.

use domain::report::WorkStarted;

use super::{Asked, Effects, Heard, Kind, Told};
use crate::message;

impl Kind for WorkStarted {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        asked
            .moved(&[&asked.rules.agent.in_progress_status])
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
