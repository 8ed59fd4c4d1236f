//! Reviews the verified change with a second model, in a separate conversation each time. The reviewer only
//! reads.

use domain::{
    ChangeReview, JobRequest, ModelRole, PhaseOutput, ReturnReason, ReviewObjection, RunPhase, WorkClass,
    check::ChangeReport,
};
use serde_json::json;

use super::conversation_loop::await_submission;
use super::rework::{can_work, go_back_to_work};
use crate::run::machine::{
    DIFF, DialogSpec, PhaseSpec, PlannerRunState, RunStep, resume_call, spent_reason, start_own_call,
};
use crate::run::tools::{accepted_input, read_attachment, reviews};

const MOST_TURNS: usize = 10;
// Lines up to which a trivial change of one file has no review.
const SMALL_LINES: u32 = 20;

const DIALOG: DialogSpec = DialogSpec {
    is_fresh_after_return: true,
    ..DialogSpec::reading(
        RunPhase::Review,
        ModelRole::Reviewer,
        &[reviews::SUBMIT_REVIEW, read_attachment::TOOL],
    )
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let (Some(request), Some(_), None) = (
        state.request(),
        state.outputs().proof(),
        state.outputs().cut_short(),
    ) else {
        return RunStep::Over;
    };
    if !request.rules.agent.auto_review || is_small(state) || is_committed(state) {
        return RunStep::Over;
    }
    match state.outputs().review() {
        Some(review) => conclude_review(state, request, review),
        None => request_review(state),
    }
}

fn is_small(state: &PlannerRunState) -> bool {
    let change = state.verification().checks().report();
    let is_small = |change: &ChangeReport| {
        let lines = change.product_lines + change.test_lines;
        change.files <= 1 && lines <= SMALL_LINES && change.findings.is_empty()
    };
    state.outputs().class() == WorkClass::Trivial && change.is_some_and(is_small)
}

/// Returns true if a former release continued to the commit without a review.
fn is_committed(state: &PlannerRunState) -> bool {
    let mut calls = state.own_calls().calls().iter();
    state.outputs().review().is_none() && calls.any(|call| call.call.name != DIFF)
}

/// Fetches the change once, then requests the review.
fn request_review(state: &PlannerRunState) -> RunStep {
    match state.open_own_call() {
        Some(call) => return resume_call(state, call),
        None if state.own_calls().find(DIFF).is_none() => {
            return start_own_call(state, DIFF, &json!({})).into();
        }
        None => {}
    }
    let is_unpaid = DIALOG.turns(state).is_empty() && spent_reason(state, DIALOG.phase).is_some();
    // A change without budget for its review is delivered; the review is noted as incomplete.
    if is_unpaid || state.budget().refused(state.journal.last_at).is_some() {
        return finish_phase(Vec::new(), false);
    }
    let review = |calls: &[_]| accepted_input(calls, &reviews::SUBMIT_REVIEW, reviews::parse_objections);
    match await_submission(state, &DIALOG, MOST_TURNS, review) {
        Ok(Some(objections)) => finish_phase(objections, true),
        Ok(None) => finish_phase(Vec::new(), false),
        Err(step) => step,
    }
}

fn finish_phase(objections: Vec<ReviewObjection>, is_complete: bool) -> RunStep {
    let review = ChangeReview {
        objections,
        is_complete,
    };
    PhaseOutput::Review { review }.into()
}

/// Returns to the work within the rounds of the rules, unless the reviewer only repeats itself. Remaining
/// objections go into the pull request.
fn conclude_review(state: &PlannerRunState, request: &JobRequest, review: &ChangeReview) -> RunStep {
    let objections: Vec<ReviewObjection> = review.blocking().cloned().collect();
    let earlier: Vec<&[ReviewObjection]> = earlier_objections(state).collect();
    let is_known = |objection: &ReviewObjection| {
        earlier
            .iter()
            .any(|all| all.iter().any(|known| known.is_same(objection)))
    };
    let is_over = earlier.len() >= request.rules.agent.review_rounds as usize;
    if objections.is_empty() || is_over || !can_work(state) || objections.iter().all(is_known) {
        return RunStep::Over;
    }
    go_back_to_work(state, ReturnReason::Reviewed { objections })
}

/// Returns the objections of earlier reviews that returned the change.
fn earlier_objections(state: &PlannerRunState) -> impl Iterator<Item = &[ReviewObjection]> {
    state.outputs().returns().iter().filter_map(|known| {
        let ReturnReason::Reviewed { objections } = &known.why else {
            return None;
        };
        Some(objections.as_slice())
    })
}
