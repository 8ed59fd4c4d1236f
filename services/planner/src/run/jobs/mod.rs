//! Registry of jobs, one file each. A new job is a row in [`JOBS`].

mod address_review;
mod answer;
mod discuss;
mod fix_ci;
mod implement;
mod notice;
mod rehearse;
mod review;
mod triage;
mod unsupported;

use domain::Phase;

use super::machine::{DialogSpec, Input, JobSpec, RunState};

/// Every job that a trigger can request.
const JOBS: [&JobSpec; 8] = [
    &implement::JOB,
    &triage::JOB,
    &fix_ci::JOB,
    &address_review::JOB,
    &answer::JOB,
    &discuss::JOB,
    &review::JOB,
    &rehearse::JOB,
];

/// Returns the job of a run.
pub(super) fn spec(state: &RunState) -> &'static JobSpec {
    match &state.input {
        Input::Notice(..) => &notice::JOB,
        Input::Request(request) => JOBS
            .into_iter()
            .find(|spec| spec.job == Some(request.job))
            .unwrap_or(&unsupported::JOB),
    }
}

/// Returns the conversations of a run's job.
pub(crate) fn dialogs(state: &RunState) -> impl Iterator<Item = &'static DialogSpec> {
    spec(state).phases.iter().filter_map(|spec| spec.dialog.as_ref())
}

/// Returns a run's conversation for a phase.
pub(super) fn dialog(state: &RunState, phase: Phase) -> Option<&'static DialogSpec> {
    dialogs(state).find(|dialog| dialog.phase == phase)
}
