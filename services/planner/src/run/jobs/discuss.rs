//! A discussion is researched, summed up, planned or closed. Nothing in the repository is changed.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Discuss),
    phases: &[
        phases::seen::PHASE,
        phases::open::PHASE,
        phases::discuss::PHASE,
        phases::done::PHASE,
    ],
    is_awaited: true,
};
