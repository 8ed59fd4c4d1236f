//! Something happened to a pull request of ours: the reporter does what follows from it.

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: None,
    phases: &[phases::tell::PHASE],
    is_awaited: true,
};
