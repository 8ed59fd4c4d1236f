//! Lines about the workspace, its tools and checks.

use domain::{
    CodeSeed, ExecutorWorkspace, McpServerTools, ToolCall, ToolResult, ToolStatus, WorkspaceSnapshot,
    check::{ChangeReport, CheckCandidate, CheckOutcome, CheckSpec, CompletedCheck, TreeKind},
    text::format_count,
};
use serde_json::Value;

use super::{
    Tone, Who,
    line::{TimelineLine, format_length},
};

pub(super) fn render_workspace_request() -> TimelineLine {
    TimelineLine::new(Who::Planner, "asks for a workspace").tone(Tone::Quiet)
}

pub(super) fn render_workspace(workspace: &ExecutorWorkspace) -> TimelineLine {
    let words = format!(
        "workspace open at {} (sandbox {:?}, {} tools)",
        workspace.base.short(),
        workspace.sandbox,
        workspace.tools.len()
    );
    TimelineLine::new(Who::Executor, words)
}

pub(super) fn render_restored_workspace(workspace: &ExecutorWorkspace) -> TimelineLine {
    let words = format!("workspace restored at {}", workspace.executor);
    TimelineLine::new(Who::Executor, words).tone(Tone::Warm)
}

pub(super) fn render_restored_snapshot() -> TimelineLine {
    TimelineLine::new(Who::Executor, "went back to the state that was proven best").tone(Tone::Warm)
}

pub(super) fn render_tool_call(call: &ToolCall) -> TimelineLine {
    // The whole input is added, because the headline only shows the values.
    let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
    let words = format!("{} {}", call.name, format_arguments(&call.input));
    TimelineLine::new(Who::Planner, words)
        .rest_of(&input)
        .tone(Tone::Soft)
}

/// Returns the values of a tool's arguments without their names, which is enough to recognize the call.
fn format_arguments(input: &Value) -> String {
    let Value::Object(fields) = input else {
        return input.to_string();
    };
    let values = fields
        .values()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    values.collect::<Vec<_>>().join(" ")
}

pub(super) fn render_tool_result(result: &ToolResult) -> TimelineLine {
    let (status, tone) = match result.status {
        ToolStatus::Ok => ("ok", Tone::Plain),
        ToolStatus::Error => ("error", Tone::Bad),
        ToolStatus::Interrupted => ("interrupted", Tone::Warm),
    };
    TimelineLine::new(Who::Executor, format!("{status}: {}", result.content))
        .rest_of(&result.content)
        .tone(tone)
}

pub(super) fn render_code_seeds(seeds: &[CodeSeed], note: &str) -> TimelineLine {
    let words = match seeds.first() {
        Some(first) => format!(
            "{} that may matter, first {}",
            format_length(seeds, "place"),
            first.path
        ),
        None => format!("no place that may matter. {note}"),
    };
    TimelineLine::new(Who::Executor, words).tone(Tone::Soft)
}

pub(super) fn render_mcp_servers(servers: &[McpServerTools]) -> TimelineLine {
    let describe = |server: &McpServerTools| match server.problem {
        Some(problem) => format!("{}: {}", server.server, problem.as_str()),
        None => format!("{}: {}", server.server, format_length(&server.tools, "tool")),
    };
    let listed: Vec<String> = servers.iter().map(describe).collect();
    let words = format!("MCP servers: {}", listed.join(", "));
    TimelineLine::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn render_check_candidates(candidates: &[CheckCandidate]) -> TimelineLine {
    let words = match candidates.first() {
        Some(first) => format!("check: {} ({})", first.command, first.why),
        None => "no command found that checks the change".to_owned(),
    };
    TimelineLine::new(Who::Executor, words).tone(Tone::Soft)
}

pub(super) fn render_check(check: &CheckSpec) -> TimelineLine {
    TimelineLine::new(Who::Planner, format!("checks {}", check.command)).tone(Tone::Soft)
}

/// Describes the files that a check saw.
pub const fn describe_tree(tree: &TreeKind) -> &'static str {
    match tree {
        TreeKind::Base => "base",
        TreeKind::Head => "change",
        TreeKind::BaseWith { .. } => "base with the change's tests",
        TreeKind::HeadWithout { .. } => "change without a part",
        TreeKind::HeadWithBase { .. } => "change with files of the base",
    }
}

pub(super) fn render_check_result(run: &CompletedCheck) -> TimelineLine {
    let tree = describe_tree(&run.tree_kind);
    let tests = run.tests.as_ref().map_or_else(String::new, |tests| {
        format!(", {} passed, {} failed", tests.passed, tests.failed)
    });
    let words = format!("{tree}: {}{tests} ({})", run.outcome.as_str(), run.command);
    // Only the complete change is judged. The base and partial trees are expected to fail.
    let tone = match &run.tree_kind {
        TreeKind::Head => match run.outcome {
            CheckOutcome::Green => Tone::Good,
            CheckOutcome::Red => Tone::Bad,
            CheckOutcome::Inert | CheckOutcome::Timeout | CheckOutcome::Infra | CheckOutcome::NoTests => {
                Tone::Plain
            }
        },
        TreeKind::Base
        | TreeKind::BaseWith { .. }
        | TreeKind::HeadWithout { .. }
        | TreeKind::HeadWithBase { .. } => Tone::Plain,
    };
    TimelineLine::new(Who::Executor, words)
        .more(&run.output_tail)
        .tone(tone)
}

pub(super) fn render_change(report: Option<&ChangeReport>) -> TimelineLine {
    let words = match report {
        Some(report) => format!(
            "the change: {}, {}, {}, {}",
            format_count(report.files.into(), "file"),
            format_count(report.product_lines.into(), "product line"),
            format_count(report.test_lines.into(), "test line"),
            format_length(&report.findings, "finding")
        ),
        None => "the change could not be inspected".to_owned(),
    };
    TimelineLine::new(Who::Executor, words)
}

pub(super) fn render_snapshot(snapshot: &WorkspaceSnapshot) -> TimelineLine {
    let changed = format_count(snapshot.files_changed.into(), "changed file");
    let words = format!("snapshot of {changed}");
    TimelineLine::new(Who::Executor, words).tone(Tone::Soft)
}
