//! How long a conversation has become. Old results leave it in big, rare steps: each step costs the provider's cache once.

use domain::{Fact, ReportOutcome};

use super::{Call, CallResult, CallState, DialogSpec, RunState, Turn};

/// Percent of the limit that the newest results may keep.
const KEPT: u64 = 50;
/// Percent of the limit that must come free; less is not worth the cache.
const WORTH: u64 = 30;
/// Bytes of ten tokens, code and words taken together.
const BYTES_OF_TEN: u64 = 32;

/// What is to be left out of a conversation before its next turn.
pub(super) fn clear(state: &RunState, dialog: &DialogSpec) -> Option<Fact> {
    let limit = state.limits.as_ref()?.context?;
    let (turns, cleared) = (state.turns_of(dialog), state.cleared_of(dialog));
    if length(turns) < limit {
        return None;
    }
    let kept = kept(turns, limit * KEPT / 100);
    let old = turns.get(cleared..turns.len() - kept)?;
    let tokens = old.iter().map(of_results).sum();
    let enough = tokens >= limit * WORTH / 100;
    enough.then(|| Fact::ContextCleared {
        phase: dialog.phase,
        turns: u32::try_from(turns.len() - kept).unwrap_or(u32::MAX),
        tokens,
    })
}

/// Tokens of the next call: what the provider counted last, and what came since. One that counts nothing is estimated.
fn length(turns: &[Turn]) -> u64 {
    let last = turns.last().and_then(|turn| Some((turn, turn.reply.as_ref()?)));
    match last {
        Some((turn, reply)) if reply.usage.input_tokens > 0 => {
            reply.usage.input_tokens + reply.usage.output_tokens + of_results(turn)
        }
        _ => turns.iter().map(of_results).sum(),
    }
}

/// About how many tokens the turn that was begun last reads of what came before it, as far as the provider counted.
pub(crate) fn known_length(state: &RunState, dialog: &DialogSpec) -> u64 {
    let turns = state.turns_of(dialog);
    length(&turns[..turns.len().saturating_sub(1)])
}

/// About how many tokens so many bytes are.
pub(crate) const fn tokens_of(bytes: usize) -> u64 {
    bytes as u64 * 10 / BYTES_OF_TEN
}

/// How many of the last turns have results within so many tokens; the very last one stays in any case.
fn kept(turns: &[Turn], room: u64) -> usize {
    let mut sum = 0;
    let fits = turns.iter().rev().take_while(|turn| {
        sum += of_results(turn);
        sum <= room
    });
    fits.count().max(1).min(turns.len())
}

fn of_results(turn: &Turn) -> u64 {
    tokens_of(turn.calls.iter().map(bytes).sum())
}

const fn bytes(call: &Call) -> usize {
    match &call.state {
        CallState::Finished { result, .. } => match result {
            CallResult::Ran(result) => result.content.len(),
            CallResult::Settled(ReportOutcome::Refused { detail } | ReportOutcome::Failed { detail }) => {
                detail.len()
            }
            CallResult::Settled(ReportOutcome::Done(_)) => 0,
        },
        CallState::Waiting | CallState::Running { .. } => 0,
    }
}
