//! Accepts that no change is possible, with a reason: an honest end must be as easy as a false one.

use domain::{GiveUp, JobRequest};
use serde::Deserialize;
use serde_json::Value;

use super::{note_exit, parse_input};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const EVIDENCE_CHARS: std::ops::RangeInclusive<usize> = 10..=4_000;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "give_up",
    ends_work: true,
    act: handle_call,
};

fn handle_call(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    note_exit(state, call, parse_give_up(&call.call.input))
}

#[derive(Deserialize)]
struct GiveUpInput {
    kind: GiveUp,
    evidence: String,
}

/// Parses the kind and its evidence.
pub(in crate::run) fn parse_give_up(input: &Value) -> Result<(GiveUp, String), ArgumentProblem> {
    let GiveUpInput { kind, evidence } = parse_input(input)?;
    let evidence = evidence.trim().to_owned();
    match EVIDENCE_CHARS.contains(&evidence.chars().count()) {
        true => Ok((kind, evidence)),
        false => Err(ArgumentProblem::Evidence),
    }
}
