//! Length of a conversation in tokens, as the provider counted it or as an estimate.

use domain::{OutboundOutcome, ReplyBlock};

use super::dialog::{CallResult, DialogTurn, PhaseDialog, TurnCall, TurnCallState};

// Bytes of ten tokens, an average of code and prose.
const BYTES_OF_TEN: u64 = 32;
// Approximate length of a rendered refusal in bytes; its text is not known here.
const REFUSAL: usize = 500;

/// Returns the tokens of the next call: the provider's last count, plus added turns, minus omitted ones.
/// Without a count the length is estimated.
pub(in crate::run::machine) fn conversation_length(dialog: &PhaseDialog, turns: &[DialogTurn]) -> u64 {
    let last = turns.last().and_then(|turn| Some((turn, turn.reply.as_ref()?)));
    let room = &dialog.room;
    match last {
        Some((turn, reply)) if reply.usage.input_tokens > 0 => {
            // The provider counted before the calls of its last reply had results.
            let counted = reply.usage.input_tokens + reply.usage.output_tokens + results_tokens(turn);
            counted.saturating_sub(room.freed)
        }
        _ => {
            let summary = room
                .summary
                .as_ref()
                .map_or(0, |summary| estimate_tokens(summary.text.len()));
            summary + first_turns_tokens(dialog, turns.len())
        }
    }
}

/// Returns the tokens of the results that clearing this many turns omits.
pub(in crate::run::machine) fn clearable_tokens(dialog: &PhaseDialog, turns: usize) -> u64 {
    let from = dialog.room.cleared.max(dialog.room.first_shown());
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
    let from = dialog.room.first_shown();
    let shown = dialog.turns.get(from..turns).unwrap_or_default();
    let cleared = dialog.room.cleared.saturating_sub(from);
    let each = shown
        .iter()
        .enumerate()
        .map(|(place, turn)| match place < cleared {
            true => reply_tokens(turn),
            false => turn_tokens(turn),
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
        ReplyBlock::ToolCall(call) => call.name.len() + call.input.to_string().len(),
        ReplyBlock::Opaque { value, .. } => value.to_string().len(),
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
    match &call.state {
        TurnCallState::Finished { result, .. } => match result {
            CallResult::Ran(result) => result.content.len(),
            CallResult::Settled(OutboundOutcome::Failed { detail }) => detail.len(),
            CallResult::Settled(OutboundOutcome::Refused(_)) => REFUSAL,
            CallResult::Settled(OutboundOutcome::Done(_)) => 0,
        },
        TurnCallState::Waiting | TurnCallState::Running { .. } => 0,
    }
}
