//! Grants a module that the kind of ticket must not change. The reason appears in the pull request.

use domain::{JobRequest, Scope, Widened};
use serde_json::Value;

use super::{arguments, is_accepted, noted};
use crate::run::machine::{Argument, Call, RunState, Step, Tool};

const REASON_CHARS: std::ops::RangeInclusive<usize> = 10..=500;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "widen_scope",
    ends_work: false,
    act,
};

fn act(state: &RunState, request: &JobRequest, call: &Call) -> Step {
    noted(state, call, parse(&call.call.input, request))
}

fn parse(input: &Value, request: &JobRequest) -> Result<Widened, Argument> {
    let Widened { module, reason } = arguments(input)?;
    let known = request.rules.modules.iter().map(|module| &module.name);
    if !known.clone().any(|name| *name == module) {
        return Err(Argument::UnknownModule {
            known: known.cloned().collect(),
        });
    }
    let reason = reason.trim().to_owned();
    match REASON_CHARS.contains(&reason.chars().count()) {
        true => Ok(Widened { module, reason }),
        false => Err(Argument::Reason),
    }
}

/// Returns the granted modules; the first reason for a module counts.
pub(in crate::run) fn widened(state: &RunState, request: &JobRequest) -> Vec<Widened> {
    if request.rules.modules.is_empty() {
        return Vec::new();
    }
    let turns = state.dialogs.iter().flat_map(|dialog| &dialog.turns);
    let calls = turns.flat_map(|turn| &turn.calls);
    let wishes = calls.filter(|call| call.call.name == TOOL.name && is_accepted(call));
    let mut all: Vec<Widened> = Vec::new();
    for wish in wishes.filter_map(|call| parse(&call.call.input, request).ok()) {
        if all.iter().all(|known| known.module != wish.module) {
            all.push(wish);
        }
    }
    all
}

/// Returns the scope of the run, granted modules included.
pub(in crate::run) fn scope<'a>(state: &RunState, request: &'a JobRequest) -> Scope<'a> {
    Scope::new(
        &request.rules.modules,
        &request.text.kind,
        &widened(state, request),
    )
}
