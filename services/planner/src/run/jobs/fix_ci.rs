//! Repairs failed checks of our pull request on its branch, first with the repository's automatic fixes,
//! then with the model.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::FixCi),
    phases: &[
        phases::announce::PHASE,
        phases::open::PHASE,
        phases::repair::PHASE,
        phases::work::PHASE,
        phases::tidy::PHASE,
        phases::prove::PHASE,
        phases::keep::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::report_back::PHASE,
    ],
    is_awaited: true,
};
