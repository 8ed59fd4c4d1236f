//! Conversation with the model: its turns, their tool calls and those of the planner, and its length in
//! tokens, as the provider counted it or as an estimate.

use domain::{
    CallId, ModelHint, ModelReply, OutboundAction, OutboundId, OutboundOutcome, ReplyBlock, ReplyStop,
    RepositoryName, RunPhase, Timestamp, ToolCall, ToolResult,
};

use super::shortening::ShortenedContext;
use super::{ApplyResult, require_legal};
use crate::transcript::measure_json;

// Bytes of ten tokens, an average of code and prose.
const BYTES_OF_TEN: u64 = 32;
// Approximate length of a rendered refusal in bytes; its text is not known here.
const REFUSAL: usize = 500;

/// Turns of one conversation, which has a separate transcript.
#[derive(Clone, Debug)]
pub(crate) struct PhaseDialog {
    pub(crate) phase: RunPhase,
    /// Number of the conversation, because a phase may have several in sequence.
    pub(crate) round: u32,
    pub(crate) turns: Vec<DialogTurn>,
    pub(crate) context: ShortenedContext,
}

/// Model call with its tool calls.
#[derive(Clone, Debug)]
pub(crate) struct DialogTurn {
    pub(crate) id: CallId,
    /// Number of turns that the run had before, in all dialogs.
    pub(crate) after: usize,
    pub(crate) reply: Option<ModelReply>,
    pub(crate) failed: Option<ModelCallFailure>,
    pub(crate) calls: Vec<TurnCall>,
    /// Reason that the changes of its calls could not be stored.
    pub(crate) unkept: Option<String>,
    /// Hints that follow its results.
    pub(crate) hints: Vec<ModelHint>,
}

impl PhaseDialog {
    pub(super) fn new(phase: RunPhase, round: u32) -> Self {
        Self {
            phase,
            round,
            turns: Vec::new(),
            context: ShortenedContext::default(),
        }
    }
}

impl DialogTurn {
    pub(super) const fn new(id: CallId, after: usize) -> Self {
        Self {
            id,
            after,
            reply: None,
            failed: None,
            calls: Vec::new(),
            unkept: None,
            hints: Vec::new(),
        }
    }

    /// Returns true if the reply stopped for this reason.
    pub(crate) fn stopped_with(&self, stop: ReplyStop) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.stop == stop)
    }
}

/// Failure of a model call.
#[derive(Clone, Debug)]
pub(crate) struct ModelCallFailure {
    pub(crate) detail: String,
    /// True if the same call may succeed later.
    pub(crate) transient: bool,
}

/// Tool call of a reply.
#[derive(Clone, Debug)]
pub(crate) struct TurnCall {
    pub(crate) call: ToolCall,
    /// Repository whose workspace runs the call; absent: the run's own.
    pub(crate) repository: Option<RepositoryName>,
    pub(crate) state: TurnCallState,
    /// Report that performs the call.
    pub(crate) report: Option<OutboundId>,
    /// Number of times that its workspace was lost while it ran.
    pub(crate) losses: u32,
    /// MCP server that runs the call; absent: an executor or the planner.
    pub(crate) server: Option<String>,
    /// True if another planner took the run over while the call ran, so its effect is unknown.
    pub(crate) is_interrupted: bool,
}

// Losses of the workspace after which a call does not run again.
const MOST_LOSSES: u32 = 2;

impl TurnCall {
    pub(super) const fn new(call: ToolCall) -> Self {
        Self {
            call,
            repository: None,
            state: TurnCallState::Waiting,
            report: None,
            losses: 0,
            server: None,
            is_interrupted: false,
        }
    }

    /// Returns the files that the call names for writing. Commands write anywhere, so they name none.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let text = |field: &str| self.call.input.get(field).and_then(serde_json::Value::as_str);
        match self.call.name.as_str() {
            // The tools of the executor whose arguments name the files that they write.
            "edit_file" | "write_file" => text("path").into_iter().collect(),
            "apply_patch" => text("patch").map(patched_files).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Returns the id and the time of the request of a running call.
    pub(crate) const fn running(&self) -> Option<(&CallId, Timestamp)> {
        match &self.state {
            TurnCallState::Running { id, at } => Some((id, *at)),
            TurnCallState::Waiting | TurnCallState::Finished { .. } => None,
        }
    }

    /// Returns the outcome of a finished call.
    pub(crate) const fn outcome(&self) -> Option<&CallResult> {
        match &self.state {
            TurnCallState::Finished { result, .. } => Some(result),
            TurnCallState::Waiting | TurnCallState::Running { .. } => None,
        }
    }

    /// Returns the result of a finished call that a tool ran.
    pub(crate) const fn tool_result(&self) -> Option<&ToolResult> {
        match self.outcome() {
            Some(CallResult::Ran(result)) => Some(result),
            Some(CallResult::Settled(_)) | None => None,
        }
    }

    /// Returns true if the call probably causes the loss of its workspace.
    pub(crate) const fn is_deadly(&self) -> bool {
        self.losses >= MOST_LOSSES
    }

    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self.state, TurnCallState::Finished { .. })
    }
}

impl TurnCall {
    /// Starts the waiting call under an id.
    pub(super) fn start(
        &mut self,
        id: &CallId,
        (repository, server): (Option<&RepositoryName>, Option<&String>),
        at: Timestamp,
    ) -> ApplyResult {
        require_legal(matches!(self.state, TurnCallState::Waiting), "it runs already")?;
        self.repository = repository.cloned();
        self.server = server.cloned();
        self.is_interrupted = false;
        self.state = TurnCallState::Running { id: id.clone(), at };
        Ok(())
    }

    /// Finishes the running call with the result of its tool.
    pub(super) fn tool_finished(&mut self, id: &CallId, result: &ToolResult, position: u64) -> ApplyResult {
        let is_running = self.running().is_some_and(|(asked, _)| asked == id);
        require_legal(is_running, "this call does not run")?;
        self.finish(CallResult::Ran(result.clone()), position);
        Ok(())
    }

    /// Notes the report that performs the call.
    pub(super) fn report_requested(&mut self, id: &OutboundId, request: &OutboundAction) -> ApplyResult {
        require_legal(request.answers_call(), "such a report answers no tool call")?;
        self.report = Some(id.clone());
        Ok(())
    }

    /// Finishes the call with the outcome of its report.
    pub(super) fn report_settled(&mut self, id: &OutboundId, outcome: &OutboundOutcome, position: u64) {
        // A failed report is retried later; only its final outcome is useful for the model.
        let is_final = !matches!(outcome, OutboundOutcome::Failed { .. });
        if is_final && self.report.as_ref() == Some(id) {
            self.finish(CallResult::Settled(outcome.clone()), position);
        }
    }

    /// Forgets a void report, so that the call requests it again.
    pub(super) fn forget_report(&mut self, void: &[OutboundId]) {
        self.report = self.report.take().filter(|id| !void.contains(id));
    }

    /// Notes that another planner continues the run. It does not know whether the call had its effect.
    pub(super) fn taken_over(&mut self) {
        self.is_interrupted |= self.running().is_some();
    }

    /// Voids the call after its workspace was lost, unless its result is from before this position.
    pub(super) fn workspace_lost(&mut self, since: u64) {
        // An MCP server runs its calls outside of the workspace.
        if self.server.is_some() {
            return;
        }
        let void = match &self.state {
            TurnCallState::Finished { position, .. } => *position > since,
            TurnCallState::Running { .. } => true,
            TurnCallState::Waiting => false,
        };
        // Only a running call can have caused the loss; a finished one is merely void.
        if self.running().is_some() {
            self.losses += 1;
        }
        // A report is performed outside of the workspace.
        if void && self.report.is_none() {
            self.state = TurnCallState::Waiting;
        }
    }

    fn finish(&mut self, result: CallResult, position: u64) {
        self.state = TurnCallState::Finished { result, position };
    }
}

/// Line prefixes of the `*** Begin Patch` format that name a file.
const FILE_MARKS: [&str; 4] = [
    "*** Update File:",
    "*** Add File:",
    "*** Delete File:",
    "*** Move to:",
];

/// Returns the files that a patch names: a unified diff, or one of the `*** Begin Patch` format.
fn patched_files(patch: &str) -> Vec<&str> {
    let is_marked = patch
        .lines()
        .any(|line| line.trim_end().starts_with("*** Begin Patch"));
    if is_marked {
        let named = |line| FILE_MARKS.iter().find_map(|mark| str::strip_prefix(line, *mark));
        return patch.lines().filter_map(named).map(str::trim).collect();
    }
    let named = patch
        .lines()
        .filter_map(|line| line.strip_prefix("--- ").or(line.strip_prefix("+++ ")));
    named
        .map(|name| name.split('\t').next().unwrap_or_default().trim())
        .map(|name| {
            name.strip_prefix("a/")
                .or(name.strip_prefix("b/"))
                .unwrap_or(name)
        })
        .collect()
}

/// Progress of a tool call.
#[derive(Clone, Debug)]
pub(crate) enum TurnCallState {
    Waiting,
    Running { id: CallId, at: Timestamp },
    Finished { result: CallResult, position: u64 },
}

/// Outcome of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallResult {
    /// Result of the tool.
    Ran(ToolResult),
    /// Outcome of the report that performed the call.
    Settled(OutboundOutcome),
}

/// Returns the tokens of the next call: the provider's last count, plus added turns, minus omitted ones.
/// Without a count the length is estimated.
pub(in crate::run::machine) fn conversation_length(dialog: &PhaseDialog, turns: &[DialogTurn]) -> u64 {
    let last = turns.last().and_then(|turn| Some((turn, turn.reply.as_ref()?)));
    let context = &dialog.context;
    match last {
        Some((turn, reply)) if reply.usage.input_tokens > 0 => {
            // The provider counted before the calls of its last reply had results.
            let counted = reply.usage.input_tokens + reply.usage.output_tokens + results_tokens(turn);
            counted.saturating_sub(context.freed)
        }
        _ => {
            let summary = context
                .summary
                .as_ref()
                .map_or(0, |summary| estimate_tokens(summary.text.len()));
            summary + first_turns_tokens(dialog, turns.len())
        }
    }
}

/// Returns the tokens of the results that clearing this many turns omits.
pub(in crate::run::machine) fn clearable_tokens(dialog: &PhaseDialog, turns: usize) -> u64 {
    let from = dialog.context.cleared.max(dialog.context.first_shown());
    dialog
        .turns
        .get(from..turns)
        .unwrap_or_default()
        .iter()
        .map(results_tokens)
        .sum()
}

/// Returns the tokens of the shown part of this many turns.
pub(in crate::run::machine) fn first_turns_tokens(dialog: &PhaseDialog, turns: usize) -> u64 {
    let from = dialog.context.first_shown();
    let shown = dialog.turns.get(from..turns).unwrap_or_default();
    let cleared = dialog.context.cleared.saturating_sub(from);
    let each = shown.iter().enumerate().map(|(place, turn)| {
        if place < cleared {
            reply_tokens(turn)
        } else {
            turn_tokens(turn)
        }
    });
    each.sum()
}

pub(in crate::run::machine) fn turn_tokens(turn: &DialogTurn) -> u64 {
    reply_tokens(turn) + results_tokens(turn)
}

fn reply_tokens(turn: &DialogTurn) -> u64 {
    let blocks = turn.reply.iter().flat_map(|reply| &reply.blocks);
    let bytes = blocks.map(|block| match block {
        ReplyBlock::Text { text } => text.len(),
        ReplyBlock::ToolCall(call) => call.name.len() + measure_json(&call.input),
        ReplyBlock::Opaque { value, .. } => measure_json(value),
    });
    estimate_tokens(bytes.sum())
}

pub(in crate::run::machine) fn results_tokens(turn: &DialogTurn) -> u64 {
    estimate_tokens(turn.calls.iter().map(result_bytes).sum())
}

/// Returns the approximate number of tokens for a number of bytes.
pub(crate) const fn estimate_tokens(bytes: usize) -> u64 {
    bytes as u64 * 10 / BYTES_OF_TEN
}

const fn result_bytes(call: &TurnCall) -> usize {
    match call.outcome() {
        Some(CallResult::Ran(result)) => result.content.len(),
        Some(CallResult::Settled(OutboundOutcome::Failed { detail })) => detail.len(),
        Some(CallResult::Settled(OutboundOutcome::Refused(_))) => REFUSAL,
        Some(CallResult::Settled(OutboundOutcome::Done(_))) | None => 0,
    }
}

/// Tool of the executor that returns the change.
pub(crate) const DIFF: &str = "diff";

/// Planner's own tool calls since the last output of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnCallState {
    calls: Vec<TurnCall>,
}

impl OwnCallState {
    /// Forgets the calls after an output, and at a restart of the work.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the calls, in order.
    pub(crate) fn calls(&self) -> &[TurnCall] {
        &self.calls
    }

    /// Returns the call without a result.
    pub(crate) fn open(&self) -> Option<&TurnCall> {
        self.calls.iter().find(|call| call.is_open())
    }

    /// Returns the call of this tool.
    pub(crate) fn find(&self, name: &str) -> Option<&TurnCall> {
        self.calls.iter().find(|call| call.call.name == name)
    }

    /// Returns the result of the call of this tool.
    pub(crate) fn result(&self, name: &str) -> Option<&ToolResult> {
        self.find(name)?.tool_result()
    }

    /// Returns the change as text, once it is fetched for its review.
    pub(crate) fn diff(&self) -> Option<&str> {
        self.result(DIFF).map(|diff| diff.content.as_str())
    }

    pub(super) fn calls_mut(&mut self) -> &mut [TurnCall] {
        &mut self.calls
    }

    pub(super) fn open_mut(&mut self) -> Option<&mut TurnCall> {
        self.calls.iter_mut().find(|call| call.is_open())
    }

    pub(super) fn add(&mut self, call: &ToolCall) {
        self.calls.push(TurnCall::new(call.clone()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list_touched_paths(patch: &str) -> Vec<String> {
        let call = ToolCall {
            id: "1".to_owned(),
            name: "apply_patch".to_owned(),
            input: json!({ "patch": patch }),
        };
        let call = TurnCall::new(call);
        call.paths().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn patches_of_both_formats_name_their_files() {
        let diff = "--- a/shop/cart.py\n+++ b/shop/cart.py\t2026\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(list_touched_paths(diff), ["shop/cart.py", "shop/cart.py"]);
        let marked = "*** Begin Patch\n*** Update File: shop/cart.py\n*** Move to: shop/basket.py\n@@\n-a\n+b\n\
                      *** Add File: docs/new.md\n+*** Update File: no/file.md\n*** Delete File: old.md\n*** End Patch\n";
        assert_eq!(
            list_touched_paths(marked),
            ["shop/cart.py", "shop/basket.py", "docs/new.md", "old.md"]
        );
        assert!(list_touched_paths("words").is_empty());
    }
}
