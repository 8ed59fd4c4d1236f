//! Accepts the plan of a change.

use domain::{JobRequest, Plan, PlanStep};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, arguments, cut, lines, noted};
use crate::run::machine::{Argument, Call, RunState, Step, Tool};

const TEXT_CHARS: usize = 4_000;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "submit_plan",
    ends_work: true,
    act,
};

fn act(state: &RunState, _: &JobRequest, call: &Call) -> Step {
    noted(state, call, parse(&call.call.input))
}

#[derive(Deserialize)]
struct Input {
    goal: String,
    approach: String,
    steps: Vec<PlanStep>,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    risks: Vec<String>,
    #[serde(default)]
    not_doing: Vec<String>,
}

/// Parses the plan from a call.
pub(in crate::run) fn parse(input: &Value) -> Result<Plan, Argument> {
    let input: Input = arguments(input)?;
    let steps = input.steps.into_iter().take(LINES).map(|step| PlanStep {
        what: cut(&step.what, LINE_CHARS),
        files: lines(step.files, LINE_CHARS),
    });
    let plan = Plan {
        goal: cut(&input.goal, TEXT_CHARS),
        approach: cut(&input.approach, TEXT_CHARS),
        steps: steps.filter(|step| !step.what.is_empty()).collect(),
        tests: lines(input.tests, LINE_CHARS),
        risks: lines(input.risks, LINE_CHARS),
        not_doing: lines(input.not_doing, LINE_CHARS),
    };
    match plan.goal.is_empty() || plan.approach.is_empty() || plan.steps.is_empty() {
        true => Err(Argument::Plan),
        false => Ok(plan),
    }
}
