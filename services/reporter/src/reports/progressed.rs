//! Report of a new phase of the model's work.

use domain::report::Progressed;

use super::{Heard, Kind, Told};

impl Kind for Progressed {
    fn heard(&self) -> Heard {
        Heard::AsProgress
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }
}
