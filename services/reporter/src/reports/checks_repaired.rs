//! Red checks were repaired.

use domain::report::ChecksRepaired;

use super::{Kind, Told};
use crate::message;

impl Kind for ChecksRepaired {
    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::repaired(self)
    }
}
