//! Reviews a foreign pull request, without changes.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Review),
    phases: &[
        phases::acknowledge::PHASE,
        phases::open_workspace::PHASE,
        phases::pull_request::PHASE,
    ],
    is_awaited: true,
};
