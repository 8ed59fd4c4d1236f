//! Accepts the objections of the reviewer.

use domain::{JobRequest, ReviewObjection};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, note_exit, parse_input, truncate_text};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const TEXT_CHARS: std::ops::RangeInclusive<usize> = 5..=LINE_CHARS;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "submit_review",
    ends_work: true,
    act: handle_call,
};

/// Refuses an objection to a file outside of the change.
fn handle_call(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    let change = state.own_calls().diff().unwrap_or_default();
    let parsed = parse_objections(&call.call.input).and_then(|objections| {
        let is_here = |objection: &ReviewObjection| change.contains(&objection.path);
        match objections.iter().all(is_here) {
            true => Ok(objections),
            false => Err(ArgumentProblem::Objection),
        }
    });
    note_exit(state, call, parsed)
}

#[derive(Deserialize)]
struct SubmitReviewInput {
    objections: Vec<ReviewObjection>,
}

/// Parses the objections from a call.
pub(in crate::run) fn parse_objections(input: &Value) -> Result<Vec<ReviewObjection>, ArgumentProblem> {
    let input: SubmitReviewInput = parse_input(input)?;
    let objections = input
        .objections
        .into_iter()
        .take(LINES)
        .map(|objection| ReviewObjection {
            path: truncate_text(&objection.path, LINE_CHARS),
            trigger: truncate_text(&objection.trigger, LINE_CHARS),
            why: truncate_text(&objection.why, LINE_CHARS),
            ..objection
        });
    let objections: Vec<ReviewObjection> = objections.collect();
    let is_long_enough = |text: &str| TEXT_CHARS.contains(&text.chars().count());
    let is_fit = |objection: &ReviewObjection| {
        !objection.path.is_empty() && is_long_enough(&objection.trigger) && is_long_enough(&objection.why)
    };
    match objections.iter().all(is_fit) {
        true => Ok(objections),
        false => Err(ArgumentProblem::Objection),
    }
}
