//! Reports the result of repaired checks or of an addressed review to the requester.

use domain::report::{ChecksRepaired, RepairStrategy, ReviewAddressed};
use domain::{About, CommitId, ReportOutcome, ReportRequest, StopReason, WaitsFor};

use super::repair::is_auto_fix;
use crate::run::machine::{PhaseSpec, RunState, Step, ask, await_report};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let Some(wanted) = wanted(state) else {
        return Step::Over;
    };
    let is_it = |request: &ReportRequest| {
        matches!(
            request,
            ReportRequest::ChecksRepaired(_) | ReportRequest::ReviewAddressed(_)
        )
    };
    match state.last_report(is_it) {
        None => ask(state, wanted, None).into(),
        Some(asked) => match &asked.outcome {
            Some(ReportOutcome::Done(_)) => Step::Over,
            Some(ReportOutcome::Refused(refusal)) => Step::Close(StopReason::ReportRefused(refusal.clone())),
            Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
        },
    }
}

fn wanted(state: &RunState) -> Option<ReportRequest> {
    let (request, handover) = (state.request()?, state.handover()?);
    Some(match &request.about {
        About::Ticket
        | About::Question(_)
        | About::Change(_)
        | About::Discussion(_)
        | About::Rehearsal(_) => return None,
        About::Checks(checks) => ReportRequest::ChecksRepaired(ChecksRepaired {
            pull_request: checks.pull_request.clone(),
            commit: pushed(state),
            strategy: match is_auto_fix(handover) {
                true => RepairStrategy::AutoFix,
                false => RepairStrategy::Model,
            },
            by: handover.repaired_by.clone(),
            summary: handover.summary.clone(),
        }),
        About::Review(round) => ReportRequest::ReviewAddressed(ReviewAddressed {
            pull_request: round.pull_request.clone(),
            reviewer: round.author.clone(),
            commit: pushed(state),
            summary: handover.summary.clone(),
            replies: handover.replies.clone(),
            left: round.left.clone(),
            deciders: round.deciders.clone(),
        }),
    })
}

/// Returns the commit that the run pushed to the branch of the pull request; absent without a push.
fn pushed(state: &RunState) -> Option<CommitId> {
    let (ours, before) = state.request()?.about.pull_request()?;
    let (branch, head) = state.work().pushed.as_ref()?;
    (*branch == ours.branch && head != before).then(|| head.clone())
}
