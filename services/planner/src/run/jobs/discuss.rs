//! Researches, summarizes, plans or closes a discussion, without changes in the repository.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Discuss),
    phases: &[
        phases::acknowledge::PHASE,
        phases::open_workspace::PHASE,
        phases::discuss::PHASE,
        phases::mark_done::PHASE,
    ],
    is_awaited: true,
};
