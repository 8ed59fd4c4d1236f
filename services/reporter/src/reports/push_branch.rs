//! A branch is to be pushed.

use domain::{PushBranch, Receipt};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{effects, made::Made};

impl Kind for PushBranch {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(effects::PushBranch(self.clone()))]
    }

    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, made: Made) -> Receipt {
        made.pushed.map_or(Receipt::Told, |head| Receipt::Pushed {
            branch: self.branch.clone(),
            head,
        })
    }
}
