//! Closes a run whose job this release does not support.

use domain::StopReason;

use crate::run::machine::{JobSpec, PhaseSpec, RunStep};

pub(super) const JOB: JobSpec = JobSpec {
    job: None,
    phases: &[PhaseSpec {
        dialog: None,
        next: |_| RunStep::Close(StopReason::UnsupportedJob),
    }],
    is_awaited: true,
};
