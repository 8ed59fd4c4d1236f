//! Accepts the plan of a change.

use domain::{ChangePlan, JobRequest, PlanStep};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, note_exit, parse_input, truncate_lines, truncate_text};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const TEXT_CHARS: usize = 4_000;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "submit_plan",
    ends_work: true,
    act: handle_call,
};

fn handle_call(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    note_exit(state, call, parse_plan(&call.call.input))
}

#[derive(Deserialize)]
struct SubmitPlanInput {
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
pub(in crate::run) fn parse_plan(input: &Value) -> Result<ChangePlan, ArgumentProblem> {
    let input: SubmitPlanInput = parse_input(input)?;
    let steps = input.steps.into_iter().take(LINES).map(|step| PlanStep {
        what: truncate_text(&step.what, LINE_CHARS),
        files: truncate_lines(step.files, LINE_CHARS),
    });
    let plan = ChangePlan {
        goal: truncate_text(&input.goal, TEXT_CHARS),
        approach: truncate_text(&input.approach, TEXT_CHARS),
        steps: steps.filter(|step| !step.what.is_empty()).collect(),
        tests: truncate_lines(input.tests, LINE_CHARS),
        risks: truncate_lines(input.risks, LINE_CHARS),
        not_doing: truncate_lines(input.not_doing, LINE_CHARS),
    };
    match plan.goal.is_empty() || plan.approach.is_empty() || plan.steps.is_empty() {
        true => Err(ArgumentProblem::Plan),
        false => Ok(plan),
    }
}
