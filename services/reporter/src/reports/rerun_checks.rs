//! Report of checks that failed for reasons outside of the change: the failed jobs run again.

use domain::report::RerunChecks;

use super::{Asked, Effects, Kind, Told, checked};
use crate::{effects, message, rounds::Checked};

impl Kind for RerunChecks {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        let rerun = Box::new(effects::RerunChecks {
            pull_request: self.pull_request.clone(),
            head: self.head.clone(),
            runs: self.runs.clone(),
        });
        let page = self.failed.first().map_or("", |check| check.url.as_str());
        vec![rerun, checked(&self.pull_request, &self.head, Checked::Failed, page)]
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        message::checks_rerun(&self.pull_request, &self.failed, told.made.rerun.as_ref())
    }
}
