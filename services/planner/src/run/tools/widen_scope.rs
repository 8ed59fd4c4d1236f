//! Grants a module that the kind of ticket must not change. The reason appears in the pull request.

use domain::{ChangeScope, JobRequest, WidenedModule};
use serde_json::Value;

use super::{is_accepted, note_exit, parse_input};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const REASON_CHARS: std::ops::RangeInclusive<usize> = 10..=500;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "widen_scope",
    ends_work: false,
    act: handle_call,
};

fn handle_call(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> RunStep {
    note_exit(state, call, parse_widening(&call.call.input, request))
}

fn parse_widening(input: &Value, request: &JobRequest) -> Result<WidenedModule, ArgumentProblem> {
    let WidenedModule { module, reason } = parse_input(input)?;
    let known = request.rules.modules.iter().map(|module| &module.name);
    if !known.clone().any(|name| *name == module) {
        return Err(ArgumentProblem::UnknownModule {
            known: known.cloned().collect(),
        });
    }
    let reason = reason.trim().to_owned();
    if REASON_CHARS.contains(&reason.chars().count()) {
        Ok(WidenedModule { module, reason })
    } else {
        Err(ArgumentProblem::Reason)
    }
}

/// Returns the granted modules; the first reason for a module counts.
pub(in crate::run) fn granted_modules(state: &PlannerRunState, request: &JobRequest) -> Vec<WidenedModule> {
    if request.rules.modules.is_empty() {
        return Vec::new();
    }
    let dialogs = state.conversation().dialogs().iter();
    let turns = dialogs.flat_map(|dialog| &dialog.turns);
    let calls = turns.flat_map(|turn| &turn.calls);
    let wishes = calls.filter(|call| call.call.name == TOOL.name && is_accepted(call));
    let mut all: Vec<WidenedModule> = Vec::new();
    for wish in wishes.filter_map(|call| parse_widening(&call.call.input, request).ok()) {
        if all.iter().all(|known| known.module != wish.module) {
            all.push(wish);
        }
    }
    all
}

/// Returns the scope of the run, granted modules included.
pub(in crate::run) fn run_scope<'a>(state: &PlannerRunState, request: &'a JobRequest) -> ChangeScope<'a> {
    ChangeScope::new(
        &request.rules.modules,
        &request.text.kind,
        &granted_modules(state, request),
    )
}
