//! A job that is only rehearsed: nobody is told anything, whatever becomes of it.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Rehearse),
    phases: &[phases::rehearse::PHASE],
    is_awaited: false,
};
