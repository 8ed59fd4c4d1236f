//! Answers a question from a comment, without changes.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Answer),
    phases: &[
        phases::acknowledge::PHASE,
        phases::open_workspace::PHASE,
        phases::answer::PHASE,
        phases::mark_done::PHASE,
    ],
    is_awaited: true,
};
