//! Length of a conversation, and the steps that shorten it.
//!
//! Old results are omitted in large, rare steps, because each step invalidates the provider's cache once.
//! After that a summary replaces the first turns.

use domain::{Fact, RepetitionKind, StopReason, TurnRepetition};

use super::state::{clearable_tokens, conversation_length, first_turns_tokens, results_tokens, turn_tokens};
use super::{DialogSpec, DialogTurn, PhaseDialog, PlannerRunState, TurnCall};

// Percent of the limit that the newest results may keep.
const KEPT: u64 = 50;
// Percent of the limit that the last turns keep next to a summary.
const KEPT_BESIDE_SUMMARY: u64 = 25;
// Percent of the limit that a step must free; a smaller step is not worth the loss of the cache.
const WORTH: u64 = 30;
// Percent of the limit that a conversation may have with a summary. Instructions and task stay; if they
// alone fill the limit, the next summary would follow soon.
const FITS: u64 = 75;
// Turns between a failed summary and the next one.
const REST: usize = 5;
// Number of refusals in a row for length after which the conversation ends.
const MOST_OVERFLOWS: u32 = 3;

/// Next step that a conversation's length requires.
pub(super) enum ContextStep {
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
pub(super) fn next_context_step(state: &PlannerRunState, spec: &DialogSpec) -> ContextStep {
    let Some(dialog) = spec.conversation(state) else {
        return ContextStep::Enough;
    };
    if dialog.context.pending.is_some() {
        return ContextStep::Awaited;
    }
    if dialog.context.overflows > dialog.context.answered {
        return step_after_refusal(state, dialog);
    }
    let limit = state
        .budget()
        .limits()
        .and_then(|limits| limits.context_of(spec.role));
    // The shortened conversation is tried before it is shortened again.
    let learned = state
        .conversation()
        .learned_limit(dialog)
        .filter(|_| dialog.context.overflows == 0);
    let limits = [limit, learned];
    match limits.into_iter().flatten().min() {
        Some(limit) => step_at_limit(state, dialog, limit),
        None => ContextStep::Enough,
    }
}

/// Returns the step when the conversation reaches its own limit.
fn step_at_limit(state: &PlannerRunState, dialog: &PhaseDialog, limit: u64) -> ContextStep {
    let turns = &dialog.turns;
    let length = conversation_length(dialog, turns);
    if length < limit {
        return ContextStep::Enough;
    }
    let worth = limit * WORTH / 100;
    let old = turns.len() - count_kept_turns(turns, limit * KEPT / 100, results_tokens);
    let tokens = clearable_tokens(dialog, old);
    if tokens >= worth {
        return ContextStep::Clear { turns: old, tokens };
    }
    let first = turns.len() - count_kept_turns(turns, limit * KEPT_BESIDE_SUMMARY / 100, turn_tokens);
    let tokens = first_turns_tokens(dialog, first);
    let fits = length.saturating_sub(tokens) <= limit * FITS / 100;
    if tokens < worth || !fits || has_recent_failure(dialog) {
        return ContextStep::Enough;
    }
    match idle_since_summary(state, dialog) {
        Some(turns) => ContextStep::Idle(turns),
        None => ContextStep::Summary { turns: first, tokens },
    }
}

/// Returns the step after the provider refused the conversation for its length. First all results except
/// the last turn's are omitted, then a summary replaces all turns except the last.
fn step_after_refusal(state: &PlannerRunState, dialog: &PhaseDialog) -> ContextStep {
    let old = dialog.turns.len().saturating_sub(1);
    let (results, first) = (clearable_tokens(dialog, old), first_turns_tokens(dialog, old));
    let may_sum_up = first > 0 && !has_recent_failure(dialog) && idle_since_summary(state, dialog).is_none();
    match dialog.context.overflows {
        MOST_OVERFLOWS.. => ContextStep::Full,
        _ if results > 0 => ContextStep::Clear {
            turns: old,
            tokens: results,
        },
        _ if may_sum_up => ContextStep::Summary {
            turns: old,
            tokens: first,
        },
        _ => ContextStep::Full,
    }
}

/// Returns true if the provider refuses a conversation that cannot be shortened.
pub(crate) fn is_context_full(state: &PlannerRunState, spec: &DialogSpec) -> bool {
    matches!(next_context_step(state, spec), ContextStep::Full)
}

/// Returns the stop reason of a run whose conversation cannot be shortened.
pub(crate) fn full_reason(state: &PlannerRunState) -> StopReason {
    let refusal = state
        .conversation()
        .dialog()
        .and_then(|dialog| dialog.context.refusal.clone());
    refusal.map_or(StopReason::ContextTooLong, |detail| StopReason::ModelFailed {
        detail,
    })
}

/// Returns the repetition of a conversation that grows without progress.
pub(crate) fn idle_repetition(state: &PlannerRunState, spec: &DialogSpec) -> Option<TurnRepetition> {
    let ContextStep::Idle(turns) = next_context_step(state, spec) else {
        return None;
    };
    Some(TurnRepetition {
        kind: RepetitionKind::Summaries,
        turns: u32::try_from(turns).unwrap_or(u32::MAX),
        tools: Vec::new(),
    })
}

/// Returns the fact that shortens a conversation.
pub(super) fn context_fact(state: &PlannerRunState, spec: &DialogSpec, step: &ContextStep) -> Option<Fact> {
    let phase = spec.phase;
    let count = |turns: usize| u32::try_from(turns).unwrap_or(u32::MAX);
    match *step {
        ContextStep::Clear { turns, tokens } => Some(Fact::ContextCleared {
            phase,
            turns: count(turns),
            tokens,
        }),
        ContextStep::Summary { turns, tokens } => Some(Fact::SummaryRequested {
            id: state.next_id(),
            phase,
            turns: count(turns),
            tokens,
        }),
        ContextStep::Enough | ContextStep::Awaited | ContextStep::Idle(_) | ContextStep::Full => None,
    }
}

/// Returns true shortly after a failed summary.
fn has_recent_failure(dialog: &PhaseDialog) -> bool {
    let failed = dialog.context.failed_at;
    failed.is_some_and(|at| dialog.turns.len() < at + REST)
}

/// Returns the number of turns since the last summary if they made no progress: no file changed, no phase
/// ended.
fn idle_since_summary(state: &PlannerRunState, dialog: &PhaseDialog) -> Option<usize> {
    let last = dialog.context.summary.as_ref()?;
    let since = dialog.turns.get(last.made_after..)?;
    let changed = |call: &TurnCall| call.tool_result().is_some_and(|result| result.changed);
    let is_idle =
        !since.iter().flat_map(|turn| &turn.calls).any(changed) && state.outputs().settled() < last.position;
    is_idle.then_some(since.len())
}

/// Returns the approximate tokens before the last turn, as far as the provider counted them.
pub(crate) fn counted_length(state: &PlannerRunState, spec: &DialogSpec) -> u64 {
    let before = |dialog: &PhaseDialog| {
        conversation_length(dialog, &dialog.turns[..dialog.turns.len().saturating_sub(1)])
    };
    spec.conversation(state).map_or(0, before)
}

/// Returns the number of last turns whose counted tokens fit; at least one.
fn count_kept_turns(turns: &[DialogTurn], limit: u64, count: fn(&DialogTurn) -> u64) -> usize {
    let mut sum = 0;
    let fits = turns.iter().rev().take_while(|turn| {
        sum += count(turn);
        sum <= limit
    });
    fits.count().max(1).min(turns.len())
}
