//! CI is red: the draft is kept.

use domain::report::ChecksFailed;

use super::{Kind, Told};
use crate::message;

impl Kind for ChecksFailed {
    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::checks_failed(&self.pull_request, &self.failed, self.unrepaired)
    }
}
