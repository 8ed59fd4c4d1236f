//! Implements a ticket and opens a pull request.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Implement),
    phases: &[
        phases::acknowledge::PHASE,
        phases::announce::PHASE,
        phases::open_workspace::PHASE,
        phases::seed_code::PHASE,
        phases::intake::PHASE,
        phases::forecast::PHASE,
        phases::refine_code::PHASE,
        phases::plan::PHASE,
        phases::approve_plan::PHASE,
        phases::work::PHASE,
        phases::auto_fix::PHASE,
        phases::prove::PHASE,
        phases::restore_best::PHASE,
        phases::review::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
    ],
    is_awaited: true,
};
