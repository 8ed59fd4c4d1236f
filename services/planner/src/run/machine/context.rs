//! Length of a conversation, and the steps that shorten it.
//!
//! Old results are omitted in large, rare steps, because each step invalidates the provider's cache once.
//! After that a summary replaces the first turns.

use domain::{Block, Fact, Repetition, RepetitionKind, ReportOutcome, StopReason};

use super::{Call, CallResult, CallState, Dialog, DialogSpec, RunState, Turn};

// Percent of the limit that the newest results may keep.
const KEPT: u64 = 50;
// Percent of the limit that the last turns keep next to a summary.
const KEPT_BESIDE_SUMMARY: u64 = 25;
// Percent of the limit that a step must free; a smaller step is not worth the loss of the cache.
const WORTH: u64 = 30;
// Percent of the limit that a conversation may have with a summary. Instructions and task stay; if they
// alone fill the limit, the next summary would follow soon.
const FITS: u64 = 75;
// Bytes of ten tokens, an average of code and prose.
const BYTES_OF_TEN: u64 = 32;
// Turns between a failed summary and the next one.
const REST: usize = 5;
// Number of refusals in a row for length after which the conversation ends.
const MOST_OVERFLOWS: u32 = 3;

/// Next step that a conversation's length requires.
pub(super) enum Room {
    /// The conversation fits as it is.
    Enough,
    /// Results of the first turns are omitted.
    Clear { turns: usize, tokens: u64 },
    /// A summary replaces the first turns.
    Summary { turns: usize, tokens: u64 },
    /// A summary is pending.
    Awaited,
    /// The conversation is as long again after a summary, without progress; with the number of turns since.
    Idle(usize),
    /// The provider refuses the conversation, and it cannot be shortened.
    Full,
}

/// Returns the next step that a conversation's length requires.
pub(super) fn room(state: &RunState, spec: &DialogSpec) -> Room {
    let Some(dialog) = state.known(spec) else {
        return Room::Enough;
    };
    if dialog.room.pending.is_some() {
        return Room::Awaited;
    }
    if dialog.room.overflows > dialog.room.answered {
        return forced(state, dialog);
    }
    let limit = state
        .limits
        .as_ref()
        .and_then(|limits| limits.context_of(spec.role));
    // The shortened conversation is tried before it is shortened again.
    let learned = state.learned_limit(dialog).filter(|_| dialog.room.overflows == 0);
    let limits = [limit, learned];
    match limits.into_iter().flatten().min() {
        Some(limit) => wanted(state, dialog, limit),
        None => Room::Enough,
    }
}

/// Returns the step when the conversation reaches its own limit.
fn wanted(state: &RunState, dialog: &Dialog, limit: u64) -> Room {
    let turns = &dialog.turns;
    let length = length(dialog, turns);
    if length < limit {
        return Room::Enough;
    }
    let worth = limit * WORTH / 100;
    let old = turns.len() - kept(turns, limit * KEPT / 100, of_results);
    let tokens = of_old_results(dialog, old);
    if tokens >= worth {
        return Room::Clear { turns: old, tokens };
    }
    let first = turns.len() - kept(turns, limit * KEPT_BESIDE_SUMMARY / 100, of_turn);
    let tokens = of_first_turns(dialog, first);
    let fits = length.saturating_sub(tokens) <= limit * FITS / 100;
    if tokens < worth || !fits || is_at_rest(dialog) {
        return Room::Enough;
    }
    match idle_since_summary(state, dialog) {
        Some(turns) => Room::Idle(turns),
        None => Room::Summary { turns: first, tokens },
    }
}

/// Returns the step after the provider refused the conversation for its length. First all results except
/// the last turn's are omitted, then a summary replaces all turns except the last.
fn forced(state: &RunState, dialog: &Dialog) -> Room {
    let old = dialog.turns.len().saturating_sub(1);
    let (results, first) = (of_old_results(dialog, old), of_first_turns(dialog, old));
    let may_sum_up = first > 0 && !is_at_rest(dialog) && idle_since_summary(state, dialog).is_none();
    match dialog.room.overflows {
        MOST_OVERFLOWS.. => Room::Full,
        _ if results > 0 => Room::Clear {
            turns: old,
            tokens: results,
        },
        _ if may_sum_up => Room::Summary {
            turns: old,
            tokens: first,
        },
        _ => Room::Full,
    }
}

/// Returns true if the provider refuses a conversation that cannot be shortened.
pub(crate) fn is_full(state: &RunState, spec: &DialogSpec) -> bool {
    matches!(room(state, spec), Room::Full)
}

/// Returns the stop reason of a run whose conversation cannot be shortened.
pub(crate) fn full_reason(state: &RunState) -> StopReason {
    let refusal = state.dialog().and_then(|dialog| dialog.room.refusal.clone());
    refusal.map_or(StopReason::ContextTooLong, |detail| StopReason::ModelFailed {
        detail,
    })
}

/// Returns the repetition of a conversation that grows without progress.
pub(crate) fn idle(state: &RunState, spec: &DialogSpec) -> Option<Repetition> {
    let Room::Idle(turns) = room(state, spec) else {
        return None;
    };
    Some(Repetition {
        kind: RepetitionKind::Summaries,
        turns: u32::try_from(turns).unwrap_or(u32::MAX),
        tools: Vec::new(),
    })
}

/// Returns the fact that shortens a conversation.
pub(super) fn fact(state: &RunState, spec: &DialogSpec, room: &Room) -> Option<Fact> {
    let phase = spec.phase;
    let count = |turns: usize| u32::try_from(turns).unwrap_or(u32::MAX);
    match *room {
        Room::Clear { turns, tokens } => Some(Fact::ContextCleared {
            phase,
            turns: count(turns),
            tokens,
        }),
        Room::Summary { turns, tokens } => Some(Fact::SummaryRequested {
            id: state.next_id(),
            phase,
            turns: count(turns),
            tokens,
        }),
        Room::Enough | Room::Awaited | Room::Idle(_) | Room::Full => None,
    }
}

/// Returns true shortly after a failed summary.
fn is_at_rest(dialog: &Dialog) -> bool {
    let failed = dialog.room.failed_at;
    failed.is_some_and(|at| dialog.turns.len() < at + REST)
}

/// Returns the number of turns since the last summary if they made no progress: no file changed, no phase
/// ended.
fn idle_since_summary(state: &RunState, dialog: &Dialog) -> Option<usize> {
    let last = dialog.room.summary.as_ref()?;
    let since = dialog.turns.get(last.made_after..)?;
    let changed = |call: &Call| matches!(&call.state, CallState::Finished { result: CallResult::Ran(result), .. } if result.changed);
    let is_idle = !since.iter().flat_map(|turn| &turn.calls).any(changed) && state.settled < last.position;
    is_idle.then_some(since.len())
}

/// Returns the tokens of the next call: the provider's last count, plus added turns, minus omitted ones.
/// Without a count the length is estimated.
pub(super) fn length(dialog: &Dialog, turns: &[Turn]) -> u64 {
    let last = turns.last().and_then(|turn| Some((turn, turn.reply.as_ref()?)));
    let room = &dialog.room;
    match last {
        Some((turn, reply)) if reply.usage.input_tokens > 0 => {
            let counted = reply.usage.input_tokens + reply.usage.output_tokens + of_results(turn);
            counted.saturating_sub(room.freed)
        }
        _ => {
            let summary = room
                .summary
                .as_ref()
                .map_or(0, |summary| tokens_of(summary.text.len()));
            summary + of_first_turns(dialog, turns.len())
        }
    }
}

/// Returns the approximate tokens before the last turn, as far as the provider counted them.
pub(crate) fn known_length(state: &RunState, spec: &DialogSpec) -> u64 {
    let before = |dialog: &Dialog| length(dialog, &dialog.turns[..dialog.turns.len().saturating_sub(1)]);
    state.known(spec).map_or(0, before)
}

/// Returns the number of last turns whose counted tokens fit; at least one.
fn kept(turns: &[Turn], room: u64, count: fn(&Turn) -> u64) -> usize {
    let mut sum = 0;
    let fits = turns.iter().rev().take_while(|turn| {
        sum += count(turn);
        sum <= room
    });
    fits.count().max(1).min(turns.len())
}

/// Returns the tokens of the results that clearing this many turns omits.
fn of_old_results(dialog: &Dialog, turns: usize) -> u64 {
    let from = dialog.room.cleared.max(dialog.room.first_shown());
    dialog
        .turns
        .get(from..turns)
        .unwrap_or_default()
        .iter()
        .map(of_results)
        .sum()
}

/// Returns the tokens of the shown part of this many turns.
fn of_first_turns(dialog: &Dialog, turns: usize) -> u64 {
    let from = dialog.room.first_shown();
    let shown = dialog.turns.get(from..turns).unwrap_or_default();
    let cleared = dialog.room.cleared.saturating_sub(from);
    let each = shown
        .iter()
        .enumerate()
        .map(|(place, turn)| match place < cleared {
            true => of_reply(turn),
            false => of_turn(turn),
        });
    each.sum()
}

fn of_turn(turn: &Turn) -> u64 {
    of_reply(turn) + of_results(turn)
}

fn of_reply(turn: &Turn) -> u64 {
    let blocks = turn.reply.iter().flat_map(|reply| &reply.blocks);
    let bytes = blocks.map(|block| match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.name.len() + call.input.to_string().len(),
        Block::Opaque { value, .. } => value.to_string().len(),
    });
    tokens_of(bytes.sum())
}

fn of_results(turn: &Turn) -> u64 {
    tokens_of(turn.calls.iter().map(bytes).sum())
}

/// Returns the approximate number of tokens for a number of bytes.
pub(crate) const fn tokens_of(bytes: usize) -> u64 {
    bytes as u64 * 10 / BYTES_OF_TEN
}

// Approximate length of a rendered refusal in bytes; its text is not known here.
const REFUSAL: usize = 500;

const fn bytes(call: &Call) -> usize {
    match &call.state {
        CallState::Finished { result, .. } => match result {
            CallResult::Ran(result) => result.content.len(),
            CallResult::Settled(ReportOutcome::Failed { detail }) => detail.len(),
            CallResult::Settled(ReportOutcome::Refused(_)) => REFUSAL,
            CallResult::Settled(ReportOutcome::Done(_)) => 0,
        },
        CallState::Waiting | CallState::Running { .. } => 0,
    }
}
