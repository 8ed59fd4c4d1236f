//! Reports the result of repaired checks or of an addressed review to the requester.

use domain::report::{ChecksRepaired, RepairStrategy, ReviewAddressed};
use domain::{CommitId, JobSubject, OutboundAction, OutboundOutcome, StopReason, WaitCondition};

use super::repair::is_auto_fix;
use crate::run::machine::{PhaseSpec, PlannerRunState, RunStep, await_report, request_report};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let Some(wanted) = wanted_report(state) else {
        return RunStep::Over;
    };
    let is_it = |request: &OutboundAction| {
        matches!(
            request,
            OutboundAction::ChecksRepaired(_) | OutboundAction::ReviewAddressed(_)
        )
    };
    match state.delivery().last_report(is_it) {
        None => request_report(state, wanted, None).into(),
        Some(asked) => match &asked.outcome {
            Some(OutboundOutcome::Done(_)) => RunStep::Over,
            Some(OutboundOutcome::Refused(refusal)) => {
                RunStep::Close(StopReason::ReportRefused(refusal.clone()))
            }
            Some(OutboundOutcome::Failed { .. }) | None => {
                await_report(state, &asked.id, WaitCondition::Report)
            }
        },
    }
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
            strategy: match is_auto_fix(handover) {
                true => RepairStrategy::AutoFix,
                false => RepairStrategy::Model,
            },
            by: handover.repaired_by.clone(),
            summary: handover.summary.clone(),
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
