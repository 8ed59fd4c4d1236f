//! Implements a ticket and opens a pull request.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Implement),
    phases: &[
        phases::seen::PHASE,
        phases::announce::PHASE,
        phases::open::PHASE,
        phases::look::PHASE,
        phases::intake::PHASE,
        phases::forecast::PHASE,
        phases::locate::PHASE,
        phases::plan::PHASE,
        phases::approve_plan::PHASE,
        phases::work::PHASE,
        phases::tidy::PHASE,
        phases::prove::PHASE,
        phases::keep::PHASE,
        phases::review::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
    ],
    is_awaited: true,
};
