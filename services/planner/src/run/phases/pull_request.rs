//! Reviews a foreign pull request once, with comments on lines.

use domain::report::PullRequestReviewed;
use domain::{
    ModelRole, OutboundAction, OutboundRefusal, PhaseOutput, ReviewOfChange, RunPhase, StopReason,
    WithdrawalReason,
};

use super::conversation_loop::await_submission;
use crate::run::machine::{
    DialogSpec, PhaseResult, PhaseSpec, PlannerRunState, RunStep, finish_refused, report_once,
};
use crate::run::tools::{accepted_input, read_attachment, reviews};

const MOST_TURNS: usize = 20;

const DIALOG: DialogSpec = DialogSpec::reading(
    RunPhase::PullRequest,
    ModelRole::Reviewer,
    &[reviews::SUBMIT_COMMENTS, read_attachment::TOOL],
);

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    match state.outputs().review_of_change() {
        PhaseResult::Present(review) => report_review(state, review),
        PhaseResult::Missing => RunStep::Close(StopReason::NoChange {
            summary: String::new(),
        }),
        PhaseResult::Pending => {
            let review = await_submission(state, &DIALOG, MOST_TURNS, |calls| {
                accepted_input(calls, &reviews::SUBMIT_COMMENTS, reviews::parse_comments)
            });
            review.map_or_else(|step| step, finish_phase)
        }
    }
}

fn finish_phase(review: Option<ReviewOfChange>) -> RunStep {
    PhaseOutput::PullRequest {
        review: review.map(Box::new),
    }
    .into()
}

fn report_review(state: &PlannerRunState, review: &ReviewOfChange) -> RunStep {
    let Some(change) = state.request().and_then(|request| request.about.change()) else {
        return RunStep::Over;
    };
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::PullRequestReviewed(_));
    let reviewed = || {
        OutboundAction::PullRequestReviewed(PullRequestReviewed {
            pull_request: change.pull_request.clone(),
            head: change.head.clone(),
            review: review.clone(),
        })
    };
    report_once(state, is_it, reviewed, |refusal| {
        if matches!(refusal, OutboundRefusal::PullRequestOver { .. }) {
            let why = WithdrawalReason::Closed;
            return RunStep::Finish(StopReason::Withdrawn { why });
        }
        finish_refused(refusal)
    })
}
