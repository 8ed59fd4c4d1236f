//! Reviews the verified change with a second model, in a separate conversation each time. The reviewer only
//! reads.

use domain::{
    Class, Fact, JobRequest, ModelRole, Objection, Phase, PhaseOutput, Return, Review, check::ChangeReport,
};
use serde_json::json;

use super::back::{back, can_work};
use super::converse::handed_in;
use crate::run::machine::{Action, DIFF, DialogSpec, PhaseSpec, RunState, Step, carry_on, own_call, spent};
use crate::run::tools::{accepted, submit_review};

const MOST_TURNS: usize = 10;
// Lines up to which a trivial change of one file has no review.
const SMALL_LINES: u32 = 20;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    is_read_only: true,
    is_fresh_after_return: true,
    ..DialogSpec::new(Phase::Review, ModelRole::Reviewer, &[submit_review::TOOL])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    let (Some(request), Some(_), None) = (state.request(), state.proof(), state.cut_short()) else {
        return Step::Over;
    };
    if !request.rules.agent.auto_review || is_small(state) || is_committed(state) {
        return Step::Over;
    }
    match state.review() {
        Some(review) => conclude(state, request, review),
        None => look(state),
    }
}

fn is_small(state: &RunState) -> bool {
    let change = state.checks.report();
    let is_small = |change: &ChangeReport| {
        let lines = change.product_lines + change.test_lines;
        change.files <= 1 && lines <= SMALL_LINES && change.findings.is_empty()
    };
    state.class() == Class::Trivial && change.is_some_and(is_small)
}

/// Returns true if a former release continued to the commit without a review.
fn is_committed(state: &RunState) -> bool {
    state.review().is_none() && state.own.iter().any(|call| call.call.name != DIFF)
}

/// Fetches the change once, then requests the review.
fn look(state: &RunState) -> Step {
    match state.open_own_call() {
        Some(call) => return carry_on(state, call),
        None if state.own(DIFF).is_none() => return own_call(state, DIFF, &json!({})).into(),
        None => {}
    }
    let is_unpaid = state.turns_of(&DIALOG).is_empty() && spent(state, DIALOG.phase).is_some();
    // A change without budget for its review is delivered; the review is noted as incomplete.
    if is_unpaid || state.refused().is_some() {
        return over(Vec::new(), false);
    }
    let review = |calls: &[_]| accepted(calls, &submit_review::TOOL, submit_review::parse);
    match handed_in(state, &DIALOG, MOST_TURNS, review) {
        Ok(Some(objections)) => over(objections, true),
        Ok(None) => over(Vec::new(), false),
        Err(step) => step,
    }
}

fn over(objections: Vec<Objection>, is_complete: bool) -> Step {
    let review = Review {
        objections,
        is_complete,
    };
    let output = PhaseOutput::Review { review };
    Action::Record(Fact::PhaseFinished { output }).into()
}

/// Returns to the work within the rounds of the rules, unless the reviewer only repeats itself. Remaining
/// objections go into the pull request.
fn conclude(state: &RunState, request: &JobRequest, review: &Review) -> Step {
    let objections: Vec<Objection> = review.blocking().cloned().collect();
    let earlier: Vec<&[Objection]> = reviews(state).collect();
    let is_known = |objection: &Objection| {
        earlier
            .iter()
            .any(|all| all.iter().any(|known| known.is_same(objection)))
    };
    let is_over = earlier.len() >= request.rules.agent.review_rounds as usize;
    if objections.is_empty() || is_over || !can_work(state) || objections.iter().all(is_known) {
        return Step::Over;
    }
    back(state, Return::Reviewed { objections })
}

/// Returns the objections of earlier reviews that returned the change.
fn reviews(state: &RunState) -> impl Iterator<Item = &[Objection]> {
    state.returns.iter().filter_map(|known| match &known.why {
        Return::Reviewed { objections } => Some(objections.as_slice()),
        _ => None,
    })
}
