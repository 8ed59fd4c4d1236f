//! CI is red: the draft is kept.

use domain::report::ChecksFailed;

use super::{Asked, Effects, Kind, Told, checked};
use crate::{message, rounds::Checked};

impl Kind for ChecksFailed {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![checked(&self.pull_request, &self.head, Checked::Failed)]
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::checks_failed(&self.pull_request, &self.failed, self.unrepaired)
    }
}
