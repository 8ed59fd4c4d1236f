//! Digest of the turns that a summary replaces.
//!
//! It is derived from those turns alone, so it stays the same while the run continues.

use domain::{ReturnReason, TicketNews, ToolResult};

use super::state::TurnSummary;
use super::{CallResult, DialogSpec, DialogTurn, PlannerRunState, TurnCall, TurnCallState};

// Newest commands that the digest lists.
const COMMANDS: usize = 10;
// Files that the digest lists.
const FILES: usize = 50;

/// Digest of the first turns of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) struct TurnDigest<'a> {
    /// Number of the turns.
    pub(crate) turns: usize,
    /// Summary that a model wrote.
    pub(crate) summary: &'a str,
    /// Comments that arrived meanwhile.
    pub(crate) news: Vec<&'a TicketNews>,
    /// Reasons for which the work was returned.
    pub(crate) returned: Vec<&'a ReturnReason>,
    /// Files that tools changed.
    pub(crate) files: Vec<&'a str>,
    /// Commands with their last exit codes, each once, newest last.
    pub(crate) commands: Vec<(&'a str, i32)>,
    /// Last command that failed without a later success, with its result.
    pub(crate) failure: Option<(&'a str, &'a ToolResult)>,
}

/// Builds the digest of the first turns of a conversation.
pub(super) fn build_digest<'a>(
    state: &'a PlannerRunState,
    spec: &DialogSpec,
    turns: &'a [DialogTurn],
    made: &'a TurnSummary,
) -> TurnDigest<'a> {
    let old = turns.get(..made.turns).unwrap_or_default();
    // Items before the first shown turn are not shown with it, so they belong to the digest.
    let until = turns.get(made.turns).map_or(0, |turn| turn.after);
    let news = state.conversation().news().shown();
    let news = news.filter(|heard| heard.after_turns <= until);
    let returns = state.outputs().returns().iter();
    let returns = returns.filter(|known| known.why.phase() == spec.phase && known.after_turns <= until);
    let calls: Vec<_> = old
        .iter()
        .flat_map(|turn| &turn.calls)
        .filter_map(finished_call)
        .collect();
    let commands = last_commands(&calls);
    let failed = commands
        .iter()
        .rev()
        .find(|(_, result)| result.exit_code != Some(0));
    TurnDigest {
        turns: made.turns,
        summary: &made.text,
        news: news.map(|heard| &heard.news).collect(),
        returned: returns.map(|known| &known.why).collect(),
        files: list_changed_files(&calls),
        failure: failed.copied(),
        commands: commands
            .iter()
            .filter_map(|(command, result)| Some((*command, result.exit_code?)))
            .collect(),
    }
}

/// Returns a call with the result of its tool.
fn finished_call(call: &TurnCall) -> Option<(&TurnCall, &ToolResult)> {
    match &call.state {
        TurnCallState::Finished {
            result: CallResult::Ran(result),
            ..
        } => Some((call, result)),
        TurnCallState::Finished { .. } | TurnCallState::Waiting | TurnCallState::Running { .. } => None,
    }
}

fn list_changed_files<'a>(calls: &[(&'a TurnCall, &'a ToolResult)]) -> Vec<&'a str> {
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

/// Returns each command with its last result.
fn last_commands<'a>(calls: &[(&'a TurnCall, &'a ToolResult)]) -> Vec<(&'a str, &'a ToolResult)> {
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
