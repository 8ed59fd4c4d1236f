//! Rehearses another job without any notification.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Rehearse),
    phases: &[phases::rehearse::PHASE],
    is_awaited: false,
};
