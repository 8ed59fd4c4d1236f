//! Repairs failed checks of our pull request on its branch, first with the repository's automatic fixes,
//! then with the model.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::FixCi),
    phases: &[
        phases::announce::PHASE,
        phases::open_workspace::PHASE,
        phases::repair::PHASE,
        phases::work::PHASE,
        phases::auto_fix::PHASE,
        phases::prove::PHASE,
        phases::restore_best::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::report_back::PHASE,
    ],
    is_awaited: true,
};
