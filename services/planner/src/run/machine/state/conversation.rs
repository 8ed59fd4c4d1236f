//! Conversations with the model: their turns, and the comments that they read.

use std::collections::BTreeMap;

use domain::{CallId, ModelFault, ModelHint, ModelReply, RunPhase, TicketNews};

use super::dialog::{DialogTurn, ModelCallFailure, PhaseDialog, TurnCall, conversation_length};
use super::{ApplyResult, require_legal};

/// Conversations with the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationState {
    /// Secret code of the run; it marks the tags around foreign text.
    nonce: String,
    /// Conversations; the last one is current.
    dialogs: Vec<PhaseDialog>,
    news: NewsState,
    /// Longest prompt in tokens that each model accepted before it refused a longer one.
    learned: BTreeMap<String, u64>,
}

impl ConversationState {
    pub(super) fn new(nonce: String) -> Self {
        Self {
            nonce,
            ..Self::default()
        }
    }

    /// Restarts the work with new conversations. The news and the limits of the models stay.
    pub(super) fn reset(&mut self) {
        self.news.reset();
        *self = Self {
            nonce: std::mem::take(&mut self.nonce),
            news: std::mem::take(&mut self.news),
            learned: std::mem::take(&mut self.learned),
            ..Self::default()
        };
    }

    /// Returns the secret code of the run.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Returns all conversations; the last one is current.
    pub(crate) fn dialogs(&self) -> &[PhaseDialog] {
        &self.dialogs
    }

    /// Returns the comments since the start of the run.
    pub(crate) const fn news(&self) -> &NewsState {
        &self.news
    }

    /// Returns the current conversation.
    pub(crate) fn dialog(&self) -> Option<&PhaseDialog> {
        self.dialogs.last()
    }

    /// Returns the conversation of a phase with this number.
    pub(crate) fn find_dialog(&self, phase: RunPhase, round: u32) -> Option<&PhaseDialog> {
        // Found by phase and round, because a return may start a further conversation of the phase.
        let mut all = self.dialogs.iter();
        all.find(|known| (known.phase, known.round) == (phase, round))
    }

    /// Returns the last turn of the current conversation.
    pub(crate) fn last_turn(&self) -> Option<&DialogTurn> {
        self.dialog()?.turns.last()
    }

    /// Returns the number of turns in all conversations.
    pub(crate) fn turn_count(&self) -> usize {
        self.dialogs.iter().map(|dialog| dialog.turns.len()).sum()
    }

    /// Returns true if the work has begun.
    pub(crate) fn is_at_work(&self) -> bool {
        self.dialogs.iter().any(|dialog| dialog.phase == RunPhase::Work)
    }

    /// Returns the first call of the last turn without a result.
    pub(super) fn open_call(&self) -> Option<&TurnCall> {
        let mut calls = self.last_turn()?.calls.iter();
        calls.find(|call| call.is_open())
    }

    /// Returns the longest prompt that the conversation's model accepted before it refused a longer one.
    pub(crate) fn learned_limit(&self, dialog: &PhaseDialog) -> Option<u64> {
        let last = dialog.turns.iter().rev().find_map(|turn| turn.reply.as_ref())?;
        self.learned.get(&last.model).copied()
    }

    pub(super) fn last_turn_mut(&mut self) -> Option<&mut DialogTurn> {
        self.dialogs.last_mut()?.turns.last_mut()
    }

    /// Returns the last conversation of a phase for changes.
    pub(super) fn last_dialog_of(&mut self, phase: RunPhase) -> Result<&mut PhaseDialog, &'static str> {
        let mut dialogs = self.dialogs.iter_mut().rev();
        let found = dialogs.find(|dialog| dialog.phase == phase);
        found.ok_or("there is no such conversation")
    }

    /// Returns the conversation whose pending summary has this id for changes.
    pub(super) fn summarized_dialog(&mut self, id: &CallId) -> Result<&mut PhaseDialog, &'static str> {
        let is_it = |dialog: &&mut PhaseDialog| {
            dialog
                .context
                .pending
                .as_ref()
                .is_some_and(|known| known.id == *id)
        };
        self.dialogs
            .iter_mut()
            .find(is_it)
            .ok_or("no such summary was asked for")
    }

    /// Makes a conversation current, an existing one or a new one, and begins its next turn.
    pub(super) fn model_requested(
        &mut self,
        id: &CallId,
        turn: u32,
        (phase, round): (RunPhase, u32),
    ) -> ApplyResult {
        require_legal(
            self.last_turn().is_none_or(|turn| turn.reply.is_some()),
            "the last turn has no reply",
        )?;
        let after = self.turn_count();
        let is_it = |dialog: &PhaseDialog| (dialog.phase, dialog.round) == (phase, round);
        let mut dialog = match self.dialogs.iter().position(is_it) {
            // Moved to the end, because the last conversation is the current one.
            Some(place) => self.dialogs.remove(place),
            None => PhaseDialog::new(phase, round),
        };
        require_legal(turn as usize == dialog.turns.len() + 1, "its turn is wrong")?;
        dialog.turns.push(DialogTurn::new(id.clone(), after));
        self.dialogs.push(dialog);
        Ok(())
    }

    pub(super) fn model_replied(&mut self, id: &CallId, reply: &ModelReply) -> ApplyResult {
        let turn = self.asked_turn(id)?;
        // Calls without a result exist from here on, so a crash after this entry runs them and not the
        // model again.
        turn.calls = reply.tool_calls().cloned().map(TurnCall::new).collect();
        turn.reply = Some(reply.clone());
        if let Some(dialog) = self.dialogs.last_mut() {
            dialog.context.taken();
        }
        Ok(())
    }

    pub(super) fn model_failed(
        &mut self,
        id: &CallId,
        failure: ModelCallFailure,
        kind: Option<ModelFault>,
        limit: Option<u64>,
    ) -> ApplyResult {
        self.asked_turn(id)?;
        if kind == Some(ModelFault::ContextTooLong) {
            return self.overflown(None);
        }
        // A limit that the provider names counts once: shortening may heal it, a second refusal fails the
        // turn.
        let is_first = || self.dialog().is_some_and(|dialog| dialog.context.overflows == 0);
        if limit.is_some() && is_first() {
            return self.overflown(Some(failure.detail));
        }
        self.asked_turn(id)?.failed = Some(failure);
        Ok(())
    }

    /// Removes the turn, because its model call was not made.
    pub(super) fn call_refused(&mut self, id: &CallId) -> ApplyResult {
        self.asked_turn(id)?;
        self.drop_turn();
        // A conversation whose first call had no budget has not begun.
        self.dialogs.retain(|dialog| !dialog.turns.is_empty());
        Ok(())
    }

    /// Removes a failed turn, so that the model is asked again.
    pub(super) fn retried(&mut self) {
        if self.last_turn().is_some_and(|turn| turn.failed.is_some()) {
            self.drop_turn();
        }
    }

    /// Attaches a hint to the conversation's last turn, so that it follows that turn's results.
    pub(super) fn hinted(&mut self, phase: RunPhase, hint: &ModelHint) -> ApplyResult {
        let turn = self.last_dialog_of(phase)?.turns.last_mut();
        let turn = turn.ok_or("no turn precedes the hint")?;
        turn.hints.push(hint.clone());
        Ok(())
    }

    pub(super) fn news_arrived(&mut self, sequence: u64, news: &TicketNews) {
        self.news.arrived(sequence, self.turn_count(), news);
    }

    fn asked_turn(&mut self, id: &CallId) -> Result<&mut DialogTurn, &'static str> {
        self.last_turn_mut()
            .filter(|turn| turn.id == *id && turn.reply.is_none() && turn.failed.is_none())
            .ok_or("the model was not asked this")
    }

    /// Removes the last turn. News after it belongs to the next one.
    fn drop_turn(&mut self) {
        if let Some(dialog) = self.dialogs.last_mut() {
            dialog.turns.pop();
        }
        self.news.limit_turns(self.turn_count());
    }

    /// Removes the turn that the provider refused for its length. The longest prompt that the model
    /// accepted becomes its limit in this run, unless one result multiplied the length.
    fn overflown(&mut self, refusal: Option<String>) -> ApplyResult {
        self.drop_turn();
        let dialog = self.dialogs.last_mut().ok_or("there is no conversation")?;
        dialog.context.overflows += 1;
        dialog.context.refusal = refusal;
        let replies = || dialog.turns.iter().filter_map(|turn| turn.reply.as_ref());
        if let Some(last) = replies().next_back() {
            let of_model = replies().filter(|reply| reply.model == last.model);
            let taken = of_model.map(|reply| reply.usage.input_tokens).max().unwrap_or(0);
            // At least half of the estimate, in case one huge result made the prompt many times longer than
            // before.
            let taken = taken.max(conversation_length(dialog, &dialog.turns) / 2);
            if taken > 0 {
                let known = self.learned.entry(last.model.clone()).or_insert(taken);
                *known = taken.min(*known);
            }
        }
        Ok(())
    }
}

/// Comments by authors without rights that one run accepts; the others stay on the ticket.
pub(crate) const MAX_STRANGER_COMMENTS: usize = 20;

/// Comments since the start of the run, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewsState {
    received: Vec<ReceivedNews>,
}

/// News that the run has received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedNews {
    /// Stream sequence of the news' trigger.
    pub(crate) sequence: u64,
    /// Number of turns before it: the model reads it in the next one.
    pub(crate) after_turns: usize,
    pub(crate) news: TicketNews,
}

impl ReceivedNews {
    /// Returns true if its author may instruct.
    pub(crate) fn may_instruct(&self) -> bool {
        let TicketNews::Comment { comment, .. } = &self.news;
        comment.may_instruct
    }
}

impl NewsState {
    /// Restarts the work. The news stay: the conversations are gone, so the first turn of the next one
    /// shows them all.
    pub(super) fn reset(&mut self) {
        let mut received = std::mem::take(&mut self.received);
        received.iter_mut().for_each(|item| item.after_turns = 0);
        *self = Self { received };
    }

    /// Returns all news, in order.
    pub(crate) fn received(&self) -> &[ReceivedNews] {
        &self.received
    }

    /// Returns the news that the model reads, in order. A journal from before the limit may contain more.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &ReceivedNews> {
        let mut strangers = 0;
        self.received.iter().filter(move |item| {
            // Counted in order, so that the shown comments stay the same when more arrive.
            strangers += usize::from(!item.may_instruct());
            item.may_instruct() || strangers <= MAX_STRANGER_COMMENTS
        })
    }

    /// Returns true if the run has the news of this trigger.
    pub(crate) fn is_known(&self, sequence: u64) -> bool {
        self.received.iter().any(|item| item.sequence == sequence)
    }

    /// Returns true if the run accepts no more comments by authors without rights.
    pub(crate) fn is_full_of_strangers(&self) -> bool {
        let strangers = self.received.iter().filter(|item| !item.may_instruct());
        strangers.count() >= MAX_STRANGER_COMMENTS
    }

    /// Returns true if an author who may instruct has commented after this many turns. Other comments wait
    /// for the next turn and cause none.
    pub(crate) fn has_answer_since(&self, turns: usize) -> bool {
        self.received
            .iter()
            .any(|item| item.after_turns >= turns && item.may_instruct())
    }

    pub(super) fn arrived(&mut self, sequence: u64, after_turns: usize, news: &TicketNews) {
        self.received.push(ReceivedNews {
            sequence,
            after_turns,
            news: news.clone(),
        });
    }

    /// Moves the news after a removed turn to the next one.
    pub(super) fn limit_turns(&mut self, turns: usize) {
        for item in &mut self.received {
            item.after_turns = item.after_turns.min(turns);
        }
    }
}
