//! Answers a question from a comment, without changes.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Answer),
    phases: &[
        phases::seen::PHASE,
        phases::open::PHASE,
        phases::answer::PHASE,
        phases::done::PHASE,
    ],
    is_awaited: true,
};
