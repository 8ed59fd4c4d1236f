//! Report of repaired checks.

use domain::report::ChecksRepaired;

use super::{Asked, Effects, Kind, Told};
use crate::{board::Lasting, effects::ShowFiles, message};

impl Kind for ChecksRepaired {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(ShowFiles {
            pull_request: Some(self.pull_request.clone()),
        })]
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::repaired(self)
    }

    fn lasting(&self, told: &Told<'_>) -> Lasting {
        Lasting {
            done: None,
            changed: message::changed(told.made.changed.as_ref(), Some(&self.pull_request)),
        }
    }
}
