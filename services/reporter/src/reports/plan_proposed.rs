//! Report of a plan that a person has to decide about.

use domain::report::PlanProposed;

use super::{Heard, Kind, Told};
use crate::message;

impl Kind for PlanProposed {
    fn heard(&self) -> Heard {
        Heard::Apart
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::proposed(&self.repository, &self.id, &self.plan, told.run)
    }
}
