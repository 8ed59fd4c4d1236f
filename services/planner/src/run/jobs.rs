//! Jobs of runs, each a list of phases. A new job is a constant and an arm of [`spec_of_job`].

use domain::{Job, RunPhase, StopReason};

use super::machine::{DialogSpec, JobSpec, PhaseSpec, PlannerRunState, RunInput, RunStep};
use super::phases;

/// Implements a ticket and opens a pull request.
const IMPLEMENT: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ACKNOWLEDGE,
        phases::preparation::ANNOUNCE,
        phases::preparation::OPEN_WORKSPACE,
        phases::preparation::LIST_MCP_TOOLS,
        phases::preparation::SEED_CODE,
        phases::preparation::CONFIRM_PUSH,
        phases::intake::PHASE,
        phases::preparation::FORECAST,
        phases::preparation::REFINE_CODE,
        phases::prove::BASE_CHECKS,
        phases::plan::PHASE,
        phases::plan::APPROVAL,
        phases::work::PHASE,
        phases::repair::AUTO_FIX,
        phases::prove::PHASE,
        phases::rework::RESTORE_BEST,
        phases::review::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
    ],
    is_awaited: true,
};

/// Triages a new ticket. Its requester gets no notification.
const TRIAGE: JobSpec = JobSpec {
    phases: &[phases::triage::PHASE],
    is_awaited: false,
};

/// Answers a question from a comment, without changes.
const ANSWER: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ACKNOWLEDGE,
        phases::preparation::OPEN_WORKSPACE,
        phases::preparation::LIST_MCP_TOOLS,
        phases::answer::PHASE,
        phases::notification::MARK_DONE,
    ],
    is_awaited: true,
};

/// Researches, summarizes, plans or closes a discussion, without changes in the repository.
const DISCUSS: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ACKNOWLEDGE,
        phases::preparation::OPEN_WORKSPACE,
        phases::preparation::LIST_MCP_TOOLS,
        phases::discuss::PHASE,
        phases::notification::MARK_DONE,
    ],
    is_awaited: true,
};

/// Repairs failed checks of our pull request on its branch, first with the repository's automatic fixes,
/// then with the model.
const FIX_CI: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ANNOUNCE,
        phases::preparation::OPEN_WORKSPACE,
        phases::preparation::LIST_MCP_TOOLS,
        phases::preparation::CONFIRM_PUSH,
        phases::repair::REPAIR,
        phases::work::PHASE,
        phases::repair::AUTO_FIX,
        phases::prove::PHASE,
        phases::rework::RESTORE_BEST,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::notification::REPORT_BACK,
    ],
    is_awaited: true,
};

/// Addresses a review of our pull request: a reply to each comment, and the requested changes on the
/// branch.
const ADDRESS_REVIEW: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ACKNOWLEDGE,
        phases::preparation::ANNOUNCE,
        phases::preparation::OPEN_WORKSPACE,
        phases::preparation::LIST_MCP_TOOLS,
        phases::preparation::CONFIRM_PUSH,
        phases::work::PHASE,
        phases::repair::AUTO_FIX,
        phases::prove::PHASE,
        phases::rework::RESTORE_BEST,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::notification::REPORT_BACK,
        phases::notification::MARK_DONE,
    ],
    is_awaited: true,
};

/// Resolves a conflict of our pull request with its base branch. The first commit merges both.
///
/// An earlier state is never restored: only the last one was compared with both sides.
const RESOLVE_CONFLICT: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ANNOUNCE,
        phases::preparation::OPEN_WORKSPACE,
        phases::resolution::LIMITS,
        phases::preparation::CONFIRM_PUSH,
        phases::work::PHASE,
        phases::repair::AUTO_FIX,
        phases::prove::PHASE,
        phases::commit::PHASE,
        phases::gate::PHASE,
        phases::deliver::PHASE,
        phases::notification::REPORT_BACK,
    ],
    is_awaited: true,
};

/// Reviews a foreign pull request, without changes.
const REVIEW: JobSpec = JobSpec {
    phases: &[
        phases::preparation::ACKNOWLEDGE,
        phases::preparation::OPEN_WORKSPACE,
        phases::preparation::LIST_MCP_TOOLS,
        phases::pull_request::PHASE,
    ],
    is_awaited: true,
};

/// Rehearses another job without any notification.
const REHEARSAL: JobSpec = JobSpec {
    phases: &[phases::rehearse::PHASE],
    is_awaited: false,
};

/// Reports an event of our pull request to the reporter, which performs its effects.
const NOTICE: JobSpec = JobSpec {
    phases: &[phases::notification::NOTIFY],
    is_awaited: true,
};

/// Closes a run whose job cannot be requested.
const UNSUPPORTED: JobSpec = JobSpec {
    phases: &[PhaseSpec::without_dialog(|_| {
        RunStep::Close(StopReason::UnsupportedJob)
    })],
    is_awaited: true,
};

/// Returns the job of a run.
pub(super) fn job_spec(state: &PlannerRunState) -> &'static JobSpec {
    match &state.input {
        RunInput::Notice(..) => &NOTICE,
        RunInput::Request(request) => spec_of_job(request.job),
    }
}

fn spec_of_job(job: Job) -> &'static JobSpec {
    match job {
        Job::Implement => &IMPLEMENT,
        Job::Triage => &TRIAGE,
        Job::Answer => &ANSWER,
        Job::Discuss => &DISCUSS,
        Job::FixCi => &FIX_CI,
        Job::AddressReview => &ADDRESS_REVIEW,
        Job::ResolveConflict => &RESOLVE_CONFLICT,
        Job::Review => &REVIEW,
        Job::Rehearse => &REHEARSAL,
        // Events of pull requests request them, as notices.
        Job::MarkReady | Job::Finish | Job::UpdateBase | Job::BackToDraft | Job::Reopen | Job::Remind => {
            &UNSUPPORTED
        }
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
