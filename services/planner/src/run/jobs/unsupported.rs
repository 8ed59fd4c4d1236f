//! Closes a run whose job this release does not support.

use domain::StopReason;

use crate::run::machine::{JobSpec, PhaseSpec, Step};

pub(super) const JOB: JobSpec = JobSpec {
    job: None,
    phases: &[PhaseSpec {
        dialog: None,
        next: |_| Step::Close(StopReason::UnsupportedJob),
    }],
    is_awaited: true,
};
