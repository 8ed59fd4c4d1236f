//! Addresses a review of our pull request: a reply to each comment, and the requested changes on the
//! branch.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::AddressReview),
    phases: &[
        phases::seen::PHASE,
        phases::announce::PHASE,
        phases::open::PHASE,
        phases::work::PHASE,
        phases::tidy::PHASE,
        phases::prove::PHASE,
        phases::keep::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::report_back::PHASE,
        phases::done::PHASE,
    ],
    is_awaited: true,
};
