//! Accepts that no change is possible, with a reason: an honest end must be as easy as a false one.

use domain::{GiveUp, JobRequest};
use serde::Deserialize;
use serde_json::Value;

use super::{arguments, noted};
use crate::run::machine::{Argument, Call, RunState, Step, Tool};

const EVIDENCE_CHARS: std::ops::RangeInclusive<usize> = 10..=4_000;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "give_up",
    ends_work: true,
    act,
};

fn act(state: &RunState, _: &JobRequest, call: &Call) -> Step {
    noted(state, call, parse(&call.call.input))
}

#[derive(Deserialize)]
struct Input {
    kind: GiveUp,
    evidence: String,
}

/// Parses the kind and its evidence.
pub(in crate::run) fn parse(input: &Value) -> Result<(GiveUp, String), Argument> {
    let Input { kind, evidence } = arguments(input)?;
    let evidence = evidence.trim().to_owned();
    match EVIDENCE_CHARS.contains(&evidence.chars().count()) {
        true => Ok((kind, evidence)),
        false => Err(Argument::Evidence),
    }
}
