//! Report of a push that a person has to decide about.

use domain::{Proposal, Receipt};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{
    effects::ShowChange,
    made::{Made, Shown},
    message,
};

impl Kind for Proposal {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(ShowChange(self.push.clone()))]
    }

    fn heard(&self) -> Heard {
        Heard::Apart
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        let what = (self.description.as_deref(), told.made.shown.as_ref());
        message::decision_needed(&self.push, told.ticket, what, told.run)
    }

    fn receipt(&self, made: Made, _: &Asked<'_>) -> Receipt {
        made.shown.map_or(Receipt::Told, |Shown { head, diff, .. }| {
            Receipt::DecisionAsked { head, diff }
        })
    }
}
