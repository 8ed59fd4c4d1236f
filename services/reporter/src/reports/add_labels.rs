//! The ticket is to be labeled, and people hear of another that seems to ask for the same.

use domain::report::AddLabels;

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{effects, message};

impl Kind for AddLabels {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut labels = self.labels.clone();
        let of_duplicates = &asked.rules.triage.duplicate_label;
        if self.duplicate_of.is_some() && !of_duplicates.is_empty() {
            labels.push(of_duplicates.clone());
        }
        vec![Box::new(effects::AddLabels {
            ticket: asked.report.ticket.clone(),
            labels,
        })]
    }

    /// Labels say enough; whether two tickets are one, a person has to decide.
    fn heard(&self) -> Heard {
        match self.duplicate_of {
            Some(_) => Heard::Apart,
            None => Heard::Nowhere,
        }
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        let of = self.duplicate_of.as_deref();
        of.map(message::duplicate).into_iter().collect()
    }
}
