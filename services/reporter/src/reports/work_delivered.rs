//! Report of a complete change that ends its ticket without a pull request.

use domain::{Receipt, report::WorkDelivered};

use super::{Asked, Effects, Kind, Told};
use crate::{
    board::{Lasting, Mark},
    effects::{self, ShowChange},
    made::Made,
    message,
};

impl Kind for WorkDelivered {
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        // The shown change is the pushed one, and the inspection comes before the push.
        let mut effects: Effects = vec![
            Box::new(ShowChange(self.push.clone())),
            Box::new(effects::PushBranch(self.push.clone())),
        ];
        effects.extend(asked.done());
        effects.extend(asked.celebrated());
        effects
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(Mark::Done)
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::delivered(&self.push, told.made.moved.as_ref())
    }

    fn lasting(&self, told: &Told<'_>) -> Lasting {
        Lasting {
            done: Some(message::done(Some(&self.description))),
            changed: told.made.shown.as_ref().map(message::shown_change),
        }
    }

    fn receipt(&self, made: Made, _: &Asked<'_>) -> Receipt {
        made.pushed.map_or(Receipt::Told, |head| Receipt::Pushed {
            branch: self.push.branch.clone(),
            head,
        })
    }
}
