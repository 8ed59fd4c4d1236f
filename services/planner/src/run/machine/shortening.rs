//! State of a shortened conversation, and the transitions that shorten it.

use domain::{CallId, ModelReply, ReplyStop, RunPhase};

use super::transitions::{ApplyResult, require_legal};
use super::{DialogSpec, PhaseDialog, PlannerRunState};

// A longer text is not a summary. Bytes.
const SUMMARY_BYTES: usize = 16 * 1024;

/// State of a shortened conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShortenedContext {
    /// Number of turns from the start whose results are shortened to one line.
    pub(crate) cleared: usize,
    /// Summary that replaces the first turns.
    pub(crate) summary: Option<TurnSummary>,
    /// Summary that is requested.
    pub(crate) pending: Option<PendingSummary>,
    /// Number of turns when a summary failed last.
    pub(super) failed_at: Option<usize>,
    /// Tokens that were freed since the provider's last count.
    pub(super) freed: u64,
    /// Number of refusals for length in a row.
    pub(super) overflows: u32,
    /// Number of these refusals after which the conversation was shortened.
    pub(super) answered: u32,
    /// Message of the provider, if the limit is not the model's context window.
    pub(super) refusal: Option<String>,
}

/// Summary of the first turns of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct TurnSummary {
    /// Number of turns that it replaces.
    pub(crate) turns: usize,
    /// Number of turns when it was made.
    pub(crate) made_after: usize,
    /// Position in the journal.
    pub(super) position: u64,
    /// Text that the model wrote.
    pub(crate) text: String,
}

/// Summary that is requested.
#[derive(Clone, Debug)]
pub(crate) struct PendingSummary {
    pub(crate) id: CallId,
    /// Number of turns that it replaces.
    pub(crate) turns: usize,
    tokens: u64,
}

impl ShortenedContext {
    /// Returns the index of the first shown turn.
    pub(crate) fn first_shown(&self) -> usize {
        self.summary.as_ref().map_or(0, |summary| summary.turns)
    }

    /// Resets the counters after the provider accepted and counted the conversation.
    pub(super) fn taken(&mut self) {
        self.freed = 0;
        self.overflows = 0;
        self.answered = 0;
        self.refusal = None;
    }
}

impl PlannerRunState {
    pub(super) fn context_cleared(&mut self, phase: RunPhase, turns: u32, tokens: u64) -> ApplyResult {
        let dialog = self.last_dialog_of(phase)?;
        let turns = turns as usize;
        require_legal(
            dialog.room.cleared < turns && turns <= dialog.turns.len(),
            "there is nothing to clear",
        )?;
        dialog.room.cleared = turns;
        dialog.room.freed += tokens;
        dialog.room.answered = dialog.room.overflows;
        Ok(())
    }

    pub(super) fn summary_requested(
        &mut self,
        id: &CallId,
        phase: RunPhase,
        (turns, tokens): (u32, u64),
    ) -> ApplyResult {
        let dialog = self.last_dialog_of(phase)?;
        let turns = turns as usize;
        require_legal(dialog.room.pending.is_none(), "a summary is under way")?;
        require_legal(
            dialog.room.first_shown() < turns && turns < dialog.turns.len(),
            "there is nothing to sum up",
        )?;
        let id = id.clone();
        dialog.room.pending = Some(PendingSummary { id, turns, tokens });
        Ok(())
    }

    pub(super) fn summarized(&mut self, id: &CallId, reply: &ModelReply, position: u64) -> ApplyResult {
        // A useless summary costs its tokens as well.
        self.spending.replied(reply);
        let dialog = self.summed_up(id)?;
        let room = &mut dialog.room;
        let pending = room.pending.take().ok_or("no summary was asked for")?;
        match usable_summary(reply) {
            Some(text) => {
                room.summary = Some(TurnSummary {
                    turns: pending.turns,
                    made_after: dialog.turns.len(),
                    position,
                    text,
                });
                room.freed += pending.tokens;
                // The refusal is handled; the next call tries the shorter conversation.
                room.answered = room.overflows;
            }
            None => room.failed_at = Some(dialog.turns.len()),
        }
        Ok(())
    }

    pub(super) fn summary_failed(&mut self, id: &CallId) -> ApplyResult {
        let dialog = self.summed_up(id)?;
        dialog.room.pending = None;
        dialog.room.failed_at = Some(dialog.turns.len());
        Ok(())
    }

    /// Returns the pending summary of a conversation.
    pub(super) fn summary_under_way(&self, spec: &DialogSpec) -> Option<&CallId> {
        let pending = self.known(spec)?.room.pending.as_ref()?;
        Some(&pending.id)
    }

    /// Returns the conversation whose pending summary has this id.
    fn summed_up(&mut self, id: &CallId) -> Result<&mut PhaseDialog, &'static str> {
        let is_it =
            |dialog: &&mut PhaseDialog| dialog.room.pending.as_ref().is_some_and(|known| known.id == *id);
        self.dialogs
            .iter_mut()
            .find(is_it)
            .ok_or("no such summary was asked for")
    }

    /// Removes the turn that the provider refused for its length. The longest prompt that the model
    /// accepted becomes its limit in this run, unless one result multiplied the length.
    pub(super) fn overflown(&mut self, refusal: Option<&str>) -> ApplyResult {
        self.drop_turn();
        let dialog = self.dialogs.last_mut().ok_or("there is no conversation")?;
        dialog.room.overflows += 1;
        dialog.room.refusal = refusal.map(str::to_owned);
        let replies = || dialog.turns.iter().filter_map(|turn| turn.reply.as_ref());
        if let Some(last) = replies().next_back() {
            let of_model = replies().filter(|reply| reply.model == last.model);
            let taken = of_model.map(|reply| reply.usage.input_tokens).max().unwrap_or(0);
            // At least half of the estimate, in case one huge result made the prompt many times longer than
            // before.
            let taken = taken.max(super::context::conversation_length(dialog, &dialog.turns) / 2);
            if taken > 0 {
                let known = self.learned.entry(last.model.clone()).or_insert(taken);
                *known = taken.min(*known);
            }
        }
        Ok(())
    }

    /// Returns the longest prompt that the conversation's model accepted before it refused a longer one.
    pub(super) fn learned_limit(&self, dialog: &PhaseDialog) -> Option<u64> {
        let last = dialog.turns.iter().rev().find_map(|turn| turn.reply.as_ref())?;
        self.learned.get(&last.model).copied()
    }
}

/// Returns the text of a usable summary.
fn usable_summary(reply: &ModelReply) -> Option<String> {
    let text = reply.text().trim().to_owned();
    let is_whole = reply.stop == ReplyStop::EndTurn && reply.tool_calls().next().is_none();
    (is_whole && !text.is_empty() && text.len() <= SUMMARY_BYTES).then_some(text)
}
