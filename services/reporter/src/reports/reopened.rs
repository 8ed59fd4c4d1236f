//! Report of our pull request that a person reopened.

use domain::report::Reopened;

use super::{Asked, Effects, Kind, Told};
use crate::{effects::RecordOpen, message};

impl Kind for Reopened {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        vec![Box::new(RecordOpen {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
        })]
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::reopened(&self.by, &self.pull_request)]
    }
}
