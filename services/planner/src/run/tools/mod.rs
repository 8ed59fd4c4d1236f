//! The tools that the planner itself answers, one file each.

pub(super) mod add_labels;
pub(super) mod ask;
pub(super) mod finish;
pub(super) mod give_up;
pub(super) mod widen_scope;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::machine::{Answer, Argument, Call, RunState, Step, answer};

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
