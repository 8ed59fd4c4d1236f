//! Runs the automatic fixes of the rules over the change before its proof and commit. A failed fix is
//! listed and stops nothing.

use domain::{JobRequest, ToolStatus};
use serde_json::json;

use crate::run::machine::{
    Action, Answer, Call, CallResult, CallState, PhaseSpec, RunState, Step, answer, own_call, run_tool,
};

const RUN_COMMAND: &str = "run_command";
// Seconds for one fix.
const LIMIT_S: u32 = 600;
// A fix that also checks fails if it changed files, so it runs again.
const MOST_RUNS: usize = 2;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    match (state.request(), state.handover(), state.proof()) {
        (Some(request), Some(_), None) => run_repairs(state, &request.rules.repairs()),
        _ => Step::Over,
    }
}

/// Returns the next step of the fixes; over when each has run and its changes are stored.
pub(super) fn run_repairs(state: &RunState, repairs: &[String]) -> Step {
    if let Some(call) = state.own.iter().find(|call| is_repair(call) && call.is_open()) {
        return match call.is_deadly() {
            true => answer(state, call, Answer::LostTwice).into(),
            false => run_tool(state, call, true).into(),
        };
    }
    let is_wanted = |command: &&String| {
        let runs = runs(state, command);
        let repaired = runs.last().is_some_and(|call| !is_ok(call) && has_changed(call));
        runs.is_empty() || (repaired && runs.len() < MOST_RUNS)
    };
    match repairs.iter().find(is_wanted) {
        Some(command) => {
            let input = json!({ "command": command, "timeout_s": LIMIT_S });
            own_call(state, RUN_COMMAND, &input).into()
        }
        // The next proof must see the same files as a restored workspace.
        None if state.work().dirty => Action::TakeSnapshot.into(),
        None => Step::Over,
    }
}

/// Returns the fixes whose last run failed.
pub(super) fn unrepaired(state: &RunState) -> Vec<String> {
    let repairs = state
        .request()
        .map(|request| request.rules.repairs())
        .unwrap_or_default();
    let failed = |command: &String| runs(state, command).last().is_some_and(|call| !is_ok(call));
    repairs.into_iter().filter(failed).collect()
}

/// Returns the entries of `ci.auto_fix` that changed files.
pub(super) fn repaired_by(state: &RunState, request: &JobRequest) -> Vec<String> {
    let changed = |command: &String| runs(state, command).into_iter().any(has_changed);
    let named = request.rules.named_repairs().into_iter();
    let did = named.filter(|(_, commands)| commands.iter().any(changed));
    did.map(|(name, _)| name).collect()
}

fn is_repair(call: &Call) -> bool {
    call.call.name == RUN_COMMAND
}

fn runs<'a>(state: &'a RunState, command: &str) -> Vec<&'a Call> {
    let is_it = |call: &&Call| is_repair(call) && call.call.input["command"] == command;
    state.own.iter().filter(is_it).collect()
}

fn is_ok(call: &Call) -> bool {
    matches!(&call.state, CallState::Finished { result: CallResult::Ran(result), .. }
        if result.status == ToolStatus::Ok && result.exit_code.unwrap_or_default() == 0)
}

fn has_changed(call: &Call) -> bool {
    matches!(&call.state, CallState::Finished { result: CallResult::Ran(result), .. } if result.changed)
}
