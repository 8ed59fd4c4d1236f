//! The ticket is set aside until a person looks.

use domain::report::Quarantined;

use super::{Kind, Told};
use crate::message;

impl Kind for Quarantined {
    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::quarantined(&self.reason)
    }
}
