//! Wording of tool results for the model, in full and shortened, and of the hints that follow them.

use domain::{ModelHint, OutboundOutcome, RepetitionKind, RunLimits, ToolResult, TurnRepetition};

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

/// Renders a hint for the model.
pub(super) fn render_hint(hint: &ModelHint) -> String {
    match hint {
        ModelHint::Repeating(repetition) => render_repetition(repetition),
        ModelHint::Budget { used, turns, left } => render_budget(*used, *turns, left),
    }
}

fn render_budget(used: u8, turns: u32, left: &RunLimits) -> String {
    let mut parts = vec![format!("{turns} turns")];
    parts.extend(left.cost_usd.map(|cost| cost.to_string()));
    parts.extend(left.tokens.map(|tokens| format!("{tokens} tokens")));
    parts.extend(left.minutes.map(|minutes| format!("{minutes} minutes")));
    let advice = match used {
        ..80 => "",
        80..95 => {
            " Stop exploring: finish the change, prove it with the repository's checks, and call finish."
        }
        95.. => {
            " From now on only the tools that end the work are accepted: finish with what there is and say what is not done, ask, \
             or give up."
        }
    };
    format!(
        "{used} % of what this work may take is used. Left: {}.{advice}",
        parts.join(", ")
    )
}

fn render_repetition(repetition: &TurnRepetition) -> String {
    let TurnRepetition { kind, turns, tools } = repetition;
    let tools = tools.join(", ");
    let what = match kind {
        RepetitionKind::Same => format!(
            "The last {turns} turns made the same calls ({tools}) and got the same results, and no file changed in between."
        ),
        RepetitionKind::Alternating => format!(
            "The last {turns} turns went back and forth: the same calls ({tools}) with the same results, and the files are what \
             they were before."
        ),
        RepetitionKind::Malformed => {
            format!("In the last {turns} turns no tool could take the calls ({tools}).")
        }
        RepetitionKind::Truncated => {
            format!("The last {turns} replies reached the token limit and called no tool.")
        }
        RepetitionKind::Summaries => {
            format!("The last {turns} turns filled the conversation again, and no file changed in them.")
        }
    };
    format!(
        "{what} Repeating them brings nothing new, and the work is ended if it continues. Use what the results say, and do \
         something else: another file, another command, another approach; or end the work."
    )
}
