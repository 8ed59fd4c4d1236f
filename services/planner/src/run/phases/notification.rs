//! Phases that report a result: to the requester, or of an event to the reporter.

use domain::report::{ChecksRepaired, ConflictResolved, RepairStrategy, ReviewAddressed};
use domain::{CommitId, JobSubject, OutboundAction, ReactionKind, ReactionSubject, StopReason};

use super::preparation::react_once;
use super::repair::is_auto_fix;
use crate::run::machine::{
    PhaseSpec, PlannerRunState, RunInput, RunStep, finish_refused, is_work_result, report_once,
};

/// Reports the result of repaired checks, of a resolved conflict or of an addressed review to the requester.
pub(in crate::run) const REPORT_BACK: PhaseSpec = PhaseSpec::without_dialog(report_back);

fn report_back(state: &PlannerRunState) -> RunStep {
    let Some(wanted) = wanted_report(state) else {
        return RunStep::Over;
    };
    report_once(
        state,
        is_work_result,
        || wanted,
        |refusal| RunStep::Close(StopReason::ReportRefused(refusal.clone())),
    )
}

fn wanted_report(state: &PlannerRunState) -> Option<OutboundAction> {
    let (request, handover) = (state.request()?, state.outputs().handover()?);
    Some(match &request.about {
        JobSubject::Ticket
        | JobSubject::Question(_)
        | JobSubject::Change(_)
        | JobSubject::Discussion(_)
        | JobSubject::Rehearsal(_) => return None,
        JobSubject::Checks(checks) => OutboundAction::ChecksRepaired(ChecksRepaired {
            pull_request: checks.pull_request.clone(),
            commit: commit_of_push(state),
            strategy: if is_auto_fix(handover) {
                RepairStrategy::AutoFix
            } else {
                RepairStrategy::Model
            },
            by: handover.repaired_by.clone(),
            summary: handover.summary.clone(),
        }),
        JobSubject::Conflict(conflict) => OutboundAction::ConflictResolved(ConflictResolved {
            pull_request: conflict.pull_request.clone(),
            base_branch: conflict.base_branch.clone(),
            base: merged_base(state).unwrap_or_else(|| conflict.base.clone()),
            commit: commit_of_push(state),
            summary: handover.summary.clone(),
            dropped: handover.dropped.clone(),
        }),
        JobSubject::Review(round) => OutboundAction::ReviewAddressed(ReviewAddressed {
            pull_request: round.pull_request.clone(),
            reviewer: round.author.clone(),
            commit: commit_of_push(state),
            summary: handover.summary.clone(),
            replies: handover.replies.clone(),
            left: round.left.clone(),
            deciders: round.deciders.clone(),
        }),
    })
}

/// Returns the commit that the run pushed to the branch of the pull request; absent without a push.
fn commit_of_push(state: &PlannerRunState) -> Option<CommitId> {
    let (ours, before) = state.request()?.about.pull_request()?;
    let (branch, head) = state.source().work().pushed.as_ref()?;
    (*branch == ours.branch && head != before).then(|| head.clone())
}

/// Returns the commit of the base branch that the work was merged with: the tip when the workspace was opened.
fn merged_base(state: &PlannerRunState) -> Option<CommitId> {
    let kept = state.source().work().snapshot.as_ref()?;
    Some(kept.base.clone())
}

/// Marks a request from a comment as done with a reaction.
pub(in crate::run) const MARK_DONE: PhaseSpec = PhaseSpec::without_dialog(mark_done);

fn mark_done(state: &PlannerRunState) -> RunStep {
    let subject = || state.request()?.reactable(state.run.ticket());
    match subject().filter(ReactionSubject::is_comment) {
        Some(_) => react_once(state, ReactionKind::Rocket).unwrap_or(RunStep::Over),
        None => RunStep::Over,
    }
}

/// Sends the one report of a notice.
pub(in crate::run) const NOTIFY: PhaseSpec = PhaseSpec::without_dialog(notify_reporter);

fn notify_reporter(state: &PlannerRunState) -> RunStep {
    let RunInput::Notice(_, request) = &state.input else {
        return RunStep::Over;
    };
    // A notice has no other report. Its stored form lacks fields of the trigger, so the two are not equal.
    report_once(state, |_| true, || (**request).clone(), finish_refused)
}
