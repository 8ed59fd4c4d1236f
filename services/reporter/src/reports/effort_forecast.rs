//! Report of the expected effort.

use domain::report::EffortForecast;

use super::{Kind, Told};
use crate::message;

impl Kind for EffortForecast {
    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::forecast(&self.forecast)]
    }
}
