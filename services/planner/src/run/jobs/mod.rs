//! Registry of jobs, one file each. A new job is a row in [`JOBS`].

mod address_review;
mod answer;
mod discuss;
mod fix_ci;
mod implement;
mod notice;
mod rehearsal;
mod review;
mod triage;
mod unsupported_job;

use domain::RunPhase;

use super::machine::{DialogSpec, JobSpec, PlannerRunState, RunInput};

/// Every job that a trigger can request.
const JOBS: [&JobSpec; 8] = [
    &implement::JOB,
    &triage::JOB,
    &fix_ci::JOB,
    &address_review::JOB,
    &answer::JOB,
    &discuss::JOB,
    &review::JOB,
    &rehearsal::JOB,
];

/// Returns the job of a run.
pub(super) fn job_spec(state: &PlannerRunState) -> &'static JobSpec {
    match &state.input {
        RunInput::Notice(..) => &notice::JOB,
        RunInput::Request(request) => JOBS
            .into_iter()
            .find(|spec| spec.job == Some(request.job))
            .unwrap_or(&unsupported_job::JOB),
    }
}

/// Returns the conversations of a run's job.
pub(crate) fn job_dialogs(state: &PlannerRunState) -> impl Iterator<Item = &'static DialogSpec> {
    job_spec(state)
        .phases
        .iter()
        .filter_map(|spec| spec.dialog.as_ref())
}

/// Returns a run's conversation for a phase.
pub(super) fn phase_dialog(state: &PlannerRunState, phase: RunPhase) -> Option<&'static DialogSpec> {
    job_dialogs(state).find(|dialog| dialog.phase == phase)
}
