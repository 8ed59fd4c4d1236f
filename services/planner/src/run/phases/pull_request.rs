//! Reviews a foreign pull request once, with comments on lines.

use domain::report::PullRequestReviewed;
use domain::{
    Fact, ModelRole, Phase, PhaseOutput, Refusal, ReportOutcome, ReportRequest, ReviewOfChange, StopReason,
    WaitsFor, Withdrawal,
};

use super::converse::handed_in;
use crate::run::machine::{Action, DialogSpec, PhaseSpec, RunState, Step, ask, await_report};
use crate::run::tools::{accepted, submit_comments};

const MOST_TURNS: usize = 20;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    is_read_only: true,
    ..DialogSpec::new(Phase::PullRequest, ModelRole::Reviewer, &[submit_comments::TOOL])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    match state.review_of_change() {
        Some(Some(review)) => tell(state, review),
        Some(None) => Step::Close(StopReason::NoChange {
            summary: String::new(),
        }),
        None => {
            let review = handed_in(state, &DIALOG, MOST_TURNS, |calls| {
                accepted(calls, &submit_comments::TOOL, submit_comments::parse)
            });
            review.map_or_else(|step| step, over)
        }
    }
}

fn over(review: Option<ReviewOfChange>) -> Step {
    let output = PhaseOutput::PullRequest {
        review: review.map(Box::new),
    };
    Action::Record(Fact::PhaseFinished { output }).into()
}

fn tell(state: &RunState, review: &ReviewOfChange) -> Step {
    let Some(change) = state.request().and_then(|request| request.about.change()) else {
        return Step::Over;
    };
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::PullRequestReviewed(_));
    match state.last_report(is_it) {
        None => {
            let told = ReportRequest::PullRequestReviewed(PullRequestReviewed {
                pull_request: change.pull_request.clone(),
                head: change.head.clone(),
                review: review.clone(),
            });
            ask(state, told, None).into()
        }
        Some(asked) => match &asked.outcome {
            Some(ReportOutcome::Done(_)) => Step::Over,
            Some(ReportOutcome::Refused(Refusal::PullRequestOver { .. })) => {
                Step::Finish(StopReason::Withdrawn {
                    why: Withdrawal::Closed,
                })
            }
            Some(ReportOutcome::Refused(refusal)) => Step::Finish(StopReason::ReportRefused(refusal.clone())),
            Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
        },
    }
}
