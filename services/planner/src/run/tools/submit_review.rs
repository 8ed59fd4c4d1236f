//! Accepts the objections of the reviewer.

use domain::{JobRequest, Objection};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, arguments, cut, noted};
use crate::run::machine::{Argument, Call, RunState, Step, Tool};

const TEXT_CHARS: std::ops::RangeInclusive<usize> = 5..=LINE_CHARS;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "submit_review",
    ends_work: true,
    act,
};

/// Refuses an objection to a file outside of the change.
fn act(state: &RunState, _: &JobRequest, call: &Call) -> Step {
    let change = state.diff().unwrap_or_default();
    let parsed = parse(&call.call.input).and_then(|objections| {
        let is_here = |objection: &Objection| change.contains(&objection.path);
        match objections.iter().all(is_here) {
            true => Ok(objections),
            false => Err(Argument::Objection),
        }
    });
    noted(state, call, parsed)
}

#[derive(Deserialize)]
struct Input {
    objections: Vec<Objection>,
}

/// Parses the objections from a call.
pub(in crate::run) fn parse(input: &Value) -> Result<Vec<Objection>, Argument> {
    let input: Input = arguments(input)?;
    let objections = input
        .objections
        .into_iter()
        .take(LINES)
        .map(|objection| Objection {
            path: cut(&objection.path, LINE_CHARS),
            trigger: cut(&objection.trigger, LINE_CHARS),
            why: cut(&objection.why, LINE_CHARS),
            ..objection
        });
    let objections: Vec<Objection> = objections.collect();
    let is_long_enough = |text: &str| TEXT_CHARS.contains(&text.chars().count());
    let is_fit = |objection: &Objection| {
        !objection.path.is_empty() && is_long_enough(&objection.trigger) && is_long_enough(&objection.why)
    };
    match objections.iter().all(is_fit) {
        true => Ok(objections),
        false => Err(Argument::Objection),
    }
}
