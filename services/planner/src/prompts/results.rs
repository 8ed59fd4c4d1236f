//! Wording of tool results for the model, in full and shortened.

use domain::{OutboundOutcome, ToolResult, ToolStatus};

use super::answers::render_unkept;
use super::refusals::{self, BranchFreedom};
use crate::run::CallResult;

// An old result up to this length is not worth omitting.
const SHORT_CHARS: usize = 400;
const LINE_CHARS: usize = 160;
// Lines at the end of a result that may name the place of its full text.
const KEPT_LINES: usize = 6;

/// Renders the results of one reply's calls.
pub(super) fn render_results(
    calls: &[(&str, Option<&CallResult>)],
    not_kept: Option<&str>,
) -> Vec<(String, ToolResult)> {
    let mut results: Vec<(String, ToolResult)> = calls
        .iter()
        .map(|(id, result)| ((*id).to_owned(), shown_result(*result)))
        .collect();
    if let (Some(reason), Some((_, last))) = (not_kept, results.last_mut()) {
        last.content = format!("{}\n\n{}", last.content, render_unkept(reason));
    }
    results
}

/// Shortens old results to one line each; short ones stay.
pub(super) fn render_cleared(calls: &[(&str, Option<&CallResult>)]) -> Vec<(String, ToolResult)> {
    let mut results = render_results(calls, None);
    for (_, result) in &mut results {
        let chars = result.content.chars().count();
        if chars > SHORT_CHARS {
            let first = result.content.lines().find(|line| !line.trim().is_empty());
            let first: String = first.unwrap_or_default().chars().take(LINE_CHARS).collect();
            let kept = find_kept_line(&result.content);
            result.content = format!(
                "{first}\n[{chars} characters left out to make room; call the tool again if you need them]{kept}"
            );
        }
    }
    results
}

/// Returns the line in which a tool names the place of the full result, after a line break.
fn find_kept_line(content: &str) -> String {
    let mut lines = content.lines().rev().take(KEPT_LINES);
    let line = lines.find(|line| line.starts_with("[result ") && line.ends_with("with read_result]"));
    line.map_or_else(String::new, |line| {
        format!("\n{}", line.chars().take(LINE_CHARS).collect::<String>())
    })
}

fn shown_result(result: Option<&CallResult>) -> ToolResult {
    match result {
        None => ToolResult::error("Not run."),
        Some(CallResult::Ran(result)) => result.clone(),
        Some(CallResult::Settled(outcome)) => settled_result(outcome),
    }
}

fn settled_result(outcome: &OutboundOutcome) -> ToolResult {
    match outcome {
        OutboundOutcome::Done(_) => ToolResult::ok("Done."),
        OutboundOutcome::Refused(refusal) => ToolResult::error(format!(
            "Refused: {}",
            refusals::render_refusal(refusal, BranchFreedom::Free)
        )),
        OutboundOutcome::Failed { detail } => {
            ToolResult::error(format!("Failed after every retry: {detail}"))
        }
    }
}

/// Returns the result of a call that may or may not have had its effect.
pub(crate) fn interrupted_result(words: &str) -> ToolResult {
    ToolResult {
        status: ToolStatus::Interrupted,
        ..ToolResult::error(words)
    }
}
