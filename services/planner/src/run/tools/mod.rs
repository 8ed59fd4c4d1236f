//! The tools that the planner itself answers, one file each.

pub(super) mod ask;
pub(super) mod finish;
pub(super) mod give_up;
pub(super) mod submit_answer;
pub(super) mod submit_comments;
pub(super) mod submit_issues;
pub(super) mod submit_plan;
pub(super) mod submit_review;
pub(super) mod submit_triage;
pub(super) mod widen_scope;

use domain::ToolStatus;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::machine::{Answer, Argument, Call, CallResult, CallState, RunState, Step, Tool, answer};

const LINE_CHARS: usize = 1_000;
/// Entries of a list that a model fills in.
pub(super) const LINES: usize = 20;

/// The arguments of a call, in the form of its tool.
fn arguments<T: DeserializeOwned>(input: &Value) -> Result<T, Argument> {
    T::deserialize(input).map_err(|error| Argument::Malformed(error.to_string()))
}

/// Takes an exit when its arguments are right; the phase does the rest.
fn noted<T>(state: &RunState, call: &Call, parsed: Result<T, Argument>) -> Step {
    let said = match parsed {
        Ok(_) => Answer::Noted,
        Err(wrong) => Answer::Argument(wrong),
    };
    answer(state, call, said).into()
}

/// What the first accepted call of a tool says.
pub(super) fn accepted<T>(
    calls: &[Call],
    tool: &Tool,
    parse: impl Fn(&Value) -> Result<T, Argument>,
) -> Option<T> {
    let of_tool = calls.iter().filter(|call| call.call.name == tool.name);
    let mut taken = of_tool.filter(|call| is_accepted(call));
    taken.find_map(|call| parse(&call.call.input).ok())
}

fn is_accepted(call: &Call) -> bool {
    matches!(&call.state, CallState::Finished { result: CallResult::Ran(result), .. } if result.status == ToolStatus::Ok)
}

/// A text of at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.trim().chars().take(most).collect()
}

/// A text whose white space does not matter.
pub(super) fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first lines of a list, each cut, without empty ones.
pub(super) fn lines(lines: Vec<String>, most: usize) -> Vec<String> {
    let all = lines.iter().map(|line| cut(line, most));
    all.filter(|line| !line.is_empty()).take(LINES).collect()
}
