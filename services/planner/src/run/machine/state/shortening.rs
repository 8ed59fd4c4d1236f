//! State of a shortened conversation, and the transitions that shorten it.

use domain::{CallId, ModelReply, ReplyStop};

use super::{ApplyResult, require_legal};

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
    pub(crate) failed_at: Option<usize>,
    /// Tokens that were freed since the provider's last count.
    pub(crate) freed: u64,
    /// Number of refusals for length in a row.
    pub(crate) overflows: u32,
    /// Number of these refusals after which the conversation was shortened.
    pub(crate) answered: u32,
    /// Message of the provider, if the limit is not the model's context window.
    pub(crate) refusal: Option<String>,
}

/// Summary of the first turns of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct TurnSummary {
    /// Number of turns that it replaces.
    pub(crate) turns: usize,
    /// Number of turns when it was made.
    pub(crate) made_after: usize,
    /// Position in the journal.
    pub(crate) position: u64,
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

    /// Omits the results of the first turns. `all`: the turns of the conversation.
    pub(super) fn clear_results(&mut self, turns: u32, tokens: u64, all: usize) -> ApplyResult {
        let turns = turns as usize;
        require_legal(self.cleared < turns && turns <= all, "there is nothing to clear")?;
        self.cleared = turns;
        self.freed += tokens;
        self.answered = self.overflows;
        Ok(())
    }

    /// Records the request of a summary of the first turns. `all`: the turns of the conversation.
    pub(super) fn request_summary(
        &mut self,
        id: &CallId,
        (turns, tokens): (u32, u64),
        all: usize,
    ) -> ApplyResult {
        let turns = turns as usize;
        require_legal(self.pending.is_none(), "a summary is under way")?;
        require_legal(
            self.first_shown() < turns && turns < all,
            "there is nothing to sum up",
        )?;
        let id = id.clone();
        self.pending = Some(PendingSummary { id, turns, tokens });
        Ok(())
    }

    /// Replaces the first turns by the summary, if it is usable. `all`: the turns of the conversation.
    pub(super) fn finish_summary(&mut self, reply: &ModelReply, position: u64, all: usize) -> ApplyResult {
        let pending = self.pending.take().ok_or("no summary was asked for")?;
        match usable_summary(reply) {
            Some(text) => {
                self.summary = Some(TurnSummary {
                    turns: pending.turns,
                    made_after: all,
                    position,
                    text,
                });
                self.freed += pending.tokens;
                // The refusal is handled; the next call tries the shorter conversation.
                self.answered = self.overflows;
            }
            None => self.failed_at = Some(all),
        }
        Ok(())
    }

    /// Notes that the requested summary failed. `all`: the turns of the conversation.
    pub(super) fn fail_summary(&mut self, all: usize) {
        self.pending = None;
        self.failed_at = Some(all);
    }
}

/// Returns the text of a usable summary.
fn usable_summary(reply: &ModelReply) -> Option<String> {
    let text = reply.text().trim().to_owned();
    let is_whole = reply.stop == ReplyStop::EndTurn && reply.tool_calls().next().is_none();
    (is_whole && !text.is_empty() && text.len() <= SUMMARY_BYTES).then_some(text)
}
