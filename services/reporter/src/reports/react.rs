//! Report of a reaction: work has begun, or is done.

use domain::report::React;

use super::{Asked, Effects, Heard, Kind, Told};
use crate::effects;

impl Kind for React {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(effects::React {
            to: self.to.clone(),
            reaction: self.reaction,
        })]
    }

    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }
}
