//! Reports an event of our pull request to the reporter, which performs its effects.

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: None,
    phases: &[phases::notify::PHASE],
    is_awaited: true,
};
