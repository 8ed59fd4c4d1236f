//! Addresses a review of our pull request: a reply to each comment, and the requested changes on the
//! branch.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::AddressReview),
    phases: &[
        phases::acknowledge::PHASE,
        phases::announce::PHASE,
        phases::open_workspace::PHASE,
        phases::work::PHASE,
        phases::auto_fix::PHASE,
        phases::prove::PHASE,
        phases::restore_best::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::report_back::PHASE,
        phases::mark_done::PHASE,
    ],
    is_awaited: true,
};
