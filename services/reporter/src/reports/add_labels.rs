//! The ticket is to be labeled.

use domain::report::AddLabels;

use super::{Asked, Effects, Heard, Kind, Told};
use crate::effects;

impl Kind for AddLabels {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        vec![Box::new(effects::AddLabels {
            ticket: asked.report.ticket.clone(),
            labels: self.labels.clone(),
        })]
    }

    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }
}
