//! Report that requests a push.

use domain::{PushBranch, Receipt};

use super::{Asked, Effects, Heard, Kind, Told, shows};
use crate::{effects, made::Made, rounds::RoundEvent};

impl Kind for PushBranch {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        let pushed = RoundEvent::Pushed {
            branch: Some(self.branch.clone()),
            head: self.head.clone(),
            by: None,
        };
        vec![
            Box::new(effects::PushBranch(self.clone())),
            shows(&self.repository, pushed),
        ]
    }

    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, made: Made, _: &Asked<'_>) -> Receipt {
        made.pushed.map_or(Receipt::Told, |head| Receipt::Pushed {
            branch: self.branch.clone(),
            head,
        })
    }
}
