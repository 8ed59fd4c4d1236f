//! Triages a new ticket. Its requester gets no notification.

use domain::Job;

use crate::run::{machine::JobSpec, phases};

pub(super) const JOB: JobSpec = JobSpec {
    job: Some(Job::Triage),
    phases: &[phases::triage::PHASE],
    is_awaited: false,
};
