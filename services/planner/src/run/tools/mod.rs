//! Tools that the planner itself answers, by subject.

pub(super) mod exits;
pub(super) mod plans;
pub(super) mod read_attachment;
pub(super) mod reviews;
pub(super) mod submit_answer;
pub(super) mod submit_triage;
pub(super) mod widen_scope;

use domain::{ToolStatus, text::normalize_text};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::machine::{
    ArgumentProblem, CallAnswer, PlannerRunState, PlannerTool, RunStep, TurnCall, answer_call,
};

const LINE_CHARS: usize = 1_000;
/// Maximum of entries in a list from the model.
pub(super) const LINES: usize = 20;

/// Deserializes the arguments of a call.
fn parse_input<T: DeserializeOwned>(input: &Value) -> Result<T, ArgumentProblem> {
    T::deserialize(input).map_err(|error| ArgumentProblem::Malformed(error.to_string()))
}

/// Accepts an exit if its arguments are valid; the phase performs it.
fn note_exit<T>(state: &PlannerRunState, call: &TurnCall, parsed: Result<T, ArgumentProblem>) -> RunStep {
    let answer = match parsed {
        Ok(_) => CallAnswer::Noted,
        Err(wrong) => CallAnswer::Argument(wrong),
    };
    answer_call(state, call, answer).into()
}

/// Returns the parsed arguments of the first accepted call of a tool.
pub(super) fn accepted_input<T>(
    calls: &[TurnCall],
    tool: &PlannerTool,
    parse: impl Fn(&Value) -> Result<T, ArgumentProblem>,
) -> Option<T> {
    let of_tool = calls.iter().filter(|call| call.call.name == tool.name);
    let mut taken = of_tool.filter(|call| is_accepted(call));
    taken.find_map(|call| parse(&call.call.input).ok())
}

fn is_accepted(call: &TurnCall) -> bool {
    call.tool_result()
        .is_some_and(|result| result.status == ToolStatus::Ok)
}

/// Truncates a text to `most` characters.
pub(super) fn truncate_text(text: &str, most: usize) -> String {
    text.trim().chars().take(most).collect()
}

/// Collapses the white space of a text.
pub(super) fn collapse_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if one text contains the other, regardless of spaces, punctuation and case.
pub(super) fn is_about(one: &str, other: &str) -> bool {
    let (one, other) = (normalize_text(one), normalize_text(other));
    !one.is_empty() && !other.is_empty() && (one.contains(&other) || other.contains(&one))
}

/// Truncates the lines of a list and removes empty ones.
pub(super) fn truncate_lines(lines: Vec<String>, most: usize) -> Vec<String> {
    let all = lines.iter().map(|line| truncate_text(line, most));
    all.filter(|line| !line.is_empty()).take(LINES).collect()
}
