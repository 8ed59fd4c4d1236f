//! What the journal knows of turns that a summary stands for. It is drawn from those turns alone, so it stays the same as the
//! run goes on.

use domain::{News, Return, ToolResult};

use super::shorter::Summary;
use super::{Call, CallResult, CallState, DialogSpec, RunState, Turn};

/// Newest commands that are told of.
const COMMANDS: usize = 10;
/// Files that are told of.
const FILES: usize = 50;

/// What stands for the first turns of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) struct Card<'a> {
    /// For how many.
    pub(crate) turns: usize,
    /// In a model's words.
    pub(crate) summary: &'a str,
    /// What people said meanwhile.
    pub(crate) news: Vec<&'a News>,
    /// Why the work came back.
    pub(crate) returned: Vec<&'a Return>,
    /// Files that tools changed.
    pub(crate) files: Vec<&'a str>,
    /// Commands that ran, each once, the newest last, with its last exit code.
    pub(crate) commands: Vec<(&'a str, i32)>,
    /// The last command that failed and was not run with success after it, and its result.
    pub(crate) failure: Option<(&'a str, &'a ToolResult)>,
}

/// What stands for the first turns of a conversation.
pub(super) fn card<'a>(
    state: &'a RunState,
    spec: &DialogSpec,
    turns: &'a [Turn],
    made: &'a Summary,
) -> Card<'a> {
    let old = turns.get(..made.turns).unwrap_or_default();
    // What came just before the first turn that is shown is not shown with it.
    let until = turns.get(made.turns).map_or(0, |turn| turn.after);
    let news = state.shown_news().filter(|heard| heard.after_turns <= until);
    let returns = state.returns.iter();
    let returns = returns.filter(|known| known.why.phase() == spec.phase && known.after_turns <= until);
    let calls: Vec<_> = old.iter().flat_map(|turn| &turn.calls).filter_map(ran).collect();
    let commands = commands(&calls);
    let failed = commands
        .iter()
        .rev()
        .find(|(_, result)| result.exit_code != Some(0));
    Card {
        turns: made.turns,
        summary: &made.text,
        news: news.map(|heard| &heard.news).collect(),
        returned: returns.map(|known| &known.why).collect(),
        files: files(&calls),
        failure: failed.copied(),
        commands: commands
            .iter()
            .filter_map(|(command, result)| Some((*command, result.exit_code?)))
            .collect(),
    }
}

/// A call with the result of its tool.
fn ran(call: &Call) -> Option<(&Call, &ToolResult)> {
    match &call.state {
        CallState::Finished {
            result: CallResult::Ran(result),
            ..
        } => Some((call, result)),
        CallState::Finished { .. } | CallState::Waiting | CallState::Running { .. } => None,
    }
}

fn files<'a>(calls: &[(&'a Call, &'a ToolResult)]) -> Vec<&'a str> {
    let mut files = Vec::new();
    for (call, _) in calls.iter().filter(|(_, result)| result.changed) {
        for path in call.paths() {
            if files.len() < FILES && !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

/// Each command with its last result.
fn commands<'a>(calls: &[(&'a Call, &'a ToolResult)]) -> Vec<(&'a str, &'a ToolResult)> {
    let mut commands: Vec<(&str, &ToolResult)> = Vec::new();
    for (call, result) in calls.iter().rev() {
        let command = call.call.input.get("command").and_then(serde_json::Value::as_str);
        if let Some(command) = command
            && commands.len() < COMMANDS
            && result.exit_code.is_some()
            && commands.iter().all(|(known, _)| *known != command)
        {
            commands.push((command, result));
        }
    }
    commands.reverse();
    commands
}
