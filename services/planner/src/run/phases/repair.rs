//! Automatic fixes of the rules, before the proof of a change and as the first repair of failed checks.

use domain::{JobRequest, PhaseOutput, ToolStatus, WorkExit, WorkHandover};
use serde_json::json;

use crate::run::machine::{
    PhaseSpec, PlannerRunState, RunAction, RunStep, TurnCall, run_tool, start_own_call,
};

const RUN_COMMAND: &str = "run_command";
// Seconds for one fix.
const LIMIT_S: u32 = 600;
// A fix that also checks fails if it changed files, so it runs again.
const MOST_RUNS: usize = 2;
// Kind and title of the commit: `style: auto-fix`.
const KIND: &str = "style";
const TITLE: &str = "auto-fix";

/// Runs the automatic fixes before the model works on failed checks.
///
/// If they change files, that is the repair; if its proof fails, the model continues from it.
pub(in crate::run) const REPAIR: PhaseSpec = PhaseSpec::without_dialog(repair_checks);

fn repair_checks(state: &PlannerRunState) -> RunStep {
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    if state.outputs().exit().is_some()
        || state.conversation().is_at_work()
        || !state.outputs().returns().is_empty()
    {
        return RunStep::Over;
    }
    let repairs = request.rules.repairs();
    let step = run_repairs(state, &repairs);
    if !matches!(step, RunStep::Over) {
        return step;
    }
    let kept = state.source().work().snapshot.as_ref();
    if kept.is_none_or(|kept| kept.files_changed == 0) {
        return RunStep::Over;
    }
    let handover = WorkHandover {
        kind: KIND.to_owned(),
        title: TITLE.to_owned(),
        summary: repairs.join("\n"),
        repaired_by: repaired_by(state, request),
        ..WorkHandover::default()
    };
    let exit = WorkExit::Finished(Box::new(handover));
    PhaseOutput::Work { exit }.into()
}

/// Returns true if the automatic fixes made the change, not a model.
pub(super) fn is_auto_fix(handover: &WorkHandover) -> bool {
    handover.kind == KIND && handover.title == TITLE
}

/// Runs the automatic fixes over the change before its proof and commit. A failed fix is listed and stops
/// nothing.
pub(in crate::run) const AUTO_FIX: PhaseSpec = PhaseSpec::without_dialog(apply_fixes);

fn apply_fixes(state: &PlannerRunState) -> RunStep {
    match (
        state.request(),
        state.outputs().handover(),
        state.outputs().proof(),
    ) {
        (Some(request), Some(_), None) => run_repairs(state, &request.rules.repairs()),
        _ => RunStep::Over,
    }
}

/// Returns the next step of the fixes; over when each has run and its changes are stored.
fn run_repairs(state: &PlannerRunState, repairs: &[String]) -> RunStep {
    let mut known = state.own_calls().calls().iter();
    if let Some(call) = known.find(|call| is_repair(call) && call.is_open()) {
        return run_tool(state, call, true).into();
    }
    let is_wanted = |command: &&String| {
        let runs = repair_calls(state, command);
        let repaired = runs
            .last()
            .is_some_and(|call| !has_succeeded(call) && has_changed(call));
        runs.is_empty() || (repaired && runs.len() < MOST_RUNS)
    };
    match repairs.iter().find(is_wanted) {
        Some(command) => {
            let input = json!({ "command": command, "timeout_s": LIMIT_S });
            start_own_call(state, RUN_COMMAND, &input).into()
        }
        // The next proof must see the same files as a restored workspace.
        None if state.source().work().dirty => RunAction::TakeSnapshot.into(),
        None => RunStep::Over,
    }
}

/// Returns the fixes whose last run failed.
pub(super) fn failed_repairs(state: &PlannerRunState) -> Vec<String> {
    let repairs = state
        .request()
        .map(|request| request.rules.repairs())
        .unwrap_or_default();
    let failed = |command: &String| {
        repair_calls(state, command)
            .last()
            .is_some_and(|call| !has_succeeded(call))
    };
    repairs.into_iter().filter(failed).collect()
}

/// Returns the entries of `ci.auto_fix` that changed files.
fn repaired_by(state: &PlannerRunState, request: &JobRequest) -> Vec<String> {
    let changed = |command: &String| repair_calls(state, command).into_iter().any(has_changed);
    let named = request.rules.named_repairs().into_iter();
    let did = named.filter(|(_, commands)| commands.iter().any(changed));
    did.map(|(name, _)| name).collect()
}

fn is_repair(call: &TurnCall) -> bool {
    call.call.name == RUN_COMMAND
}

fn repair_calls<'a>(state: &'a PlannerRunState, command: &str) -> Vec<&'a TurnCall> {
    let is_it = |call: &&TurnCall| is_repair(call) && call.call.input["command"] == command;
    state.own_calls().calls().iter().filter(is_it).collect()
}

fn has_succeeded(call: &TurnCall) -> bool {
    call.tool_result()
        .is_some_and(|result| result.status == ToolStatus::Ok && result.exit_code.unwrap_or_default() == 0)
}

fn has_changed(call: &TurnCall) -> bool {
    call.tool_result().is_some_and(|result| result.changed)
}
