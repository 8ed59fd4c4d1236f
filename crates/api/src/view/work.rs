//! Lines about the workspace, its tools and checks.

use domain::{
    CodeSeed, Snapshot, ToolCall, ToolResult, ToolStatus, WorkspaceInfo,
    check::{ChangeReport, CheckCandidate, CheckOutcome, CheckRun, CheckSpec, TreeKind},
};
use serde_json::Value;

use super::{Tone, Who, line::Line};

pub(super) fn requested() -> Line {
    Line::new(Who::Planner, "asks for a workspace").tone(Tone::Quiet)
}

pub(super) fn opened(workspace: &WorkspaceInfo) -> Line {
    let words = format!(
        "workspace open at {} (sandbox {:?}, {} tools)",
        workspace.base.short(),
        workspace.sandbox,
        workspace.tools.len()
    );
    Line::new(Who::Executor, words)
}

pub(super) fn restored(workspace: &WorkspaceInfo) -> Line {
    let words = format!("workspace restored at {}", workspace.executor);
    Line::new(Who::Executor, words).tone(Tone::Warm)
}

pub(super) fn went_back() -> Line {
    Line::new(Who::Executor, "went back to the state that was proven best").tone(Tone::Warm)
}

pub(super) fn tool(call: &ToolCall) -> Line {
    // The whole input is added, because the headline only shows the values.
    let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
    let words = format!("{} {}", call.name, arguments(&call.input));
    Line::new(Who::Planner, words).rest_of(&input).tone(Tone::Soft)
}

/// Returns the values of a tool's arguments without their names, which is enough to recognize the call.
fn arguments(input: &Value) -> String {
    let Value::Object(fields) = input else {
        return input.to_string();
    };
    let values = fields
        .values()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    values.collect::<Vec<_>>().join(" ")
}

pub(super) fn result(result: &ToolResult) -> Line {
    let (status, tone) = match result.status {
        ToolStatus::Ok => ("ok", Tone::Plain),
        ToolStatus::Error => ("error", Tone::Bad),
        ToolStatus::Interrupted => ("interrupted", Tone::Warm),
    };
    Line::new(Who::Executor, format!("{status}: {}", result.content))
        .rest_of(&result.content)
        .tone(tone)
}

pub(super) fn code(seeds: &[CodeSeed], note: &str) -> Line {
    let words = match seeds.first() {
        Some(first) => format!("{} places to look at, first {}", seeds.len(), first.path),
        None => format!("no place to look at first. {note}"),
    };
    Line::new(Who::Executor, words).tone(Tone::Soft)
}

pub(super) fn candidates(candidates: &[CheckCandidate]) -> Line {
    let words = match candidates.first() {
        Some(first) => format!("check: {} ({})", first.command, first.why),
        None => "no command found that checks the change".to_owned(),
    };
    Line::new(Who::Executor, words).tone(Tone::Soft)
}

pub(super) fn check(check: &CheckSpec) -> Line {
    Line::new(Who::Planner, format!("checks {}", check.command)).tone(Tone::Soft)
}

pub(super) fn checked(run: &CheckRun) -> Line {
    let tree = match &run.tree_kind {
        TreeKind::Base => "base",
        TreeKind::Head => "change",
        TreeKind::BaseWith { .. } => "base with the change's tests",
        TreeKind::HeadWithout { .. } => "change without a part",
        TreeKind::HeadWithBase { .. } => "change with files of the base",
    };
    let tests = run.tests.as_ref().map_or_else(String::new, |tests| {
        format!(", {} passed, {} failed", tests.passed, tests.failed)
    });
    let words = format!("{tree}: {}{tests} ({})", run.outcome.as_str(), run.command);
    // Only the complete change is judged. The base and partial trees are expected to fail.
    let tone = match (&run.outcome, &run.tree_kind) {
        (CheckOutcome::Green, TreeKind::Head) => Tone::Good,
        (CheckOutcome::Red, TreeKind::Head) => Tone::Bad,
        _ => Tone::Plain,
    };
    Line::new(Who::Executor, words).more(&run.output_tail).tone(tone)
}

pub(super) fn change(report: Option<&ChangeReport>) -> Line {
    let words = match report {
        Some(report) => format!(
            "the change: {} files, {} product lines, {} test lines, {} findings",
            report.files,
            report.product_lines,
            report.test_lines,
            report.findings.len()
        ),
        None => "the change could not be looked at".to_owned(),
    };
    Line::new(Who::Executor, words)
}

pub(super) fn snapshot(snapshot: &Snapshot) -> Line {
    let words = format!("snapshot of {} changed files", snapshot.files_changed);
    Line::new(Who::Executor, words).tone(Tone::Soft)
}
