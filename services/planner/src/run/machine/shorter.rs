//! What made a conversation shorter, and the arrows that do.

use domain::{CallId, Phase, Reply, ReplyStop};

use super::apply::{Applied, legal};
use super::{Dialog, DialogSpec, RunState};

/// A longer summary is none, in bytes.
const SUMMARY_BYTES: usize = 16 * 1024;

/// How a conversation is kept short.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shorter {
    /// Of so many turns from the start, results are shown in one line each.
    pub(crate) cleared: usize,
    /// What stands for the first turns.
    pub(crate) summary: Option<Summary>,
    /// The summary that was asked for.
    pub(crate) pending: Option<Pending>,
    /// How many turns there were when a summary failed last.
    pub(super) failed_at: Option<usize>,
    /// Tokens that left since the provider counted last.
    pub(super) freed: u64,
    /// How often in a row the provider found the conversation too long.
    pub(super) overflows: u32,
    /// How often of these something was done about it.
    pub(super) answered: u32,
    /// What the provider said, where its limit is none of the model's window.
    pub(super) refusal: Option<String>,
}

/// What stands for the first turns of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// For how many.
    pub(crate) turns: usize,
    /// How many there were when it was made.
    pub(crate) made_after: usize,
    /// Its position in the journal.
    pub(super) position: u64,
    /// In the model's words.
    pub(crate) text: String,
}

/// A summary that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) id: CallId,
    /// For how many turns.
    pub(crate) turns: usize,
    tokens: u64,
}

impl Shorter {
    /// The place of the first turn that is shown.
    pub(crate) fn first_shown(&self) -> usize {
        self.summary.as_ref().map_or(0, |summary| summary.turns)
    }

    /// The provider took the conversation as it is, and counted it.
    pub(super) fn taken(&mut self) {
        self.freed = 0;
        self.overflows = 0;
        self.answered = 0;
        self.refusal = None;
    }
}

impl RunState {
    pub(super) fn context_cleared(&mut self, phase: Phase, turns: u32, tokens: u64) -> Applied {
        let dialog = self.last_dialog_of(phase)?;
        let turns = turns as usize;
        legal(
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
        phase: Phase,
        (turns, tokens): (u32, u64),
    ) -> Applied {
        let dialog = self.last_dialog_of(phase)?;
        let turns = turns as usize;
        legal(dialog.room.pending.is_none(), "a summary is under way")?;
        legal(
            dialog.room.first_shown() < turns && turns < dialog.turns.len(),
            "there is nothing to sum up",
        )?;
        let id = id.clone();
        dialog.room.pending = Some(Pending { id, turns, tokens });
        Ok(())
    }

    pub(super) fn summarized(&mut self, id: &CallId, reply: &Reply, position: u64) -> Applied {
        self.spending.replied(reply);
        let dialog = self.summed_up(id)?;
        let room = &mut dialog.room;
        let pending = room.pending.take().ok_or("no summary was asked for")?;
        match usable(reply) {
            Some(text) => {
                room.summary = Some(Summary {
                    turns: pending.turns,
                    made_after: dialog.turns.len(),
                    position,
                    text,
                });
                room.freed += pending.tokens;
                room.answered = room.overflows;
            }
            None => room.failed_at = Some(dialog.turns.len()),
        }
        Ok(())
    }

    pub(super) fn summary_failed(&mut self, id: &CallId) -> Applied {
        let dialog = self.summed_up(id)?;
        dialog.room.pending = None;
        dialog.room.failed_at = Some(dialog.turns.len());
        Ok(())
    }

    /// The summary of a conversation that was asked for.
    pub(super) fn summary_under_way(&self, spec: &DialogSpec) -> Option<&CallId> {
        let pending = self.known(spec)?.room.pending.as_ref()?;
        Some(&pending.id)
    }

    /// The conversation of which this summary was asked for.
    fn summed_up(&mut self, id: &CallId) -> Result<&mut Dialog, &'static str> {
        let is_it = |dialog: &&mut Dialog| dialog.room.pending.as_ref().is_some_and(|known| known.id == *id);
        self.dialogs
            .iter_mut()
            .find(is_it)
            .ok_or("no such summary was asked for")
    }

    /// The provider found the conversation too long: the turn leaves no trace in it. The longest prompt that its model took is
    /// this run's limit for the model, unless one result made the conversation many times as long.
    pub(super) fn overflown(&mut self, refusal: Option<&str>) -> Applied {
        self.drop_turn();
        let dialog = self.dialogs.last_mut().ok_or("there is no conversation")?;
        dialog.room.overflows += 1;
        dialog.room.refusal = refusal.map(str::to_owned);
        let replies = || dialog.turns.iter().filter_map(|turn| turn.reply.as_ref());
        if let Some(last) = replies().next_back() {
            let of_model = replies().filter(|reply| reply.model == last.model);
            let taken = of_model.map(|reply| reply.usage.input_tokens).max().unwrap_or(0);
            let taken = taken.max(super::context::length(dialog, &dialog.turns) / 2);
            if taken > 0 {
                let known = self.learned.entry(last.model.clone()).or_insert(taken);
                *known = taken.min(*known);
            }
        }
        Ok(())
    }

    /// The longest prompt that the model of a conversation took before it refused a longer one.
    pub(super) fn learned_limit(&self, dialog: &Dialog) -> Option<u64> {
        let last = dialog.turns.iter().rev().find_map(|turn| turn.reply.as_ref())?;
        self.learned.get(&last.model).copied()
    }
}

/// The text of a summary that can stand for turns.
fn usable(reply: &Reply) -> Option<String> {
    let text = reply.text().trim().to_owned();
    let is_whole = reply.stop == ReplyStop::EndTurn && reply.tool_calls().next().is_none();
    (is_whole && !text.is_empty() && text.len() <= SUMMARY_BYTES).then_some(text)
}
