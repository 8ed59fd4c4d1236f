//! Comments that a run received since its start.

use domain::TicketNews;

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
        received.iter_mut().for_each(|heard| heard.after_turns = 0);
        *self = Self { received };
    }

    /// Returns all news, in order.
    pub(crate) fn received(&self) -> &[ReceivedNews] {
        &self.received
    }

    /// Returns the news that the model reads, in order. A journal from before the limit may contain more.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &ReceivedNews> {
        let mut strangers = 0;
        self.received.iter().filter(move |heard| {
            // Counted in order, so that the shown comments stay the same when more arrive.
            strangers += usize::from(!heard.may_instruct());
            heard.may_instruct() || strangers <= MAX_STRANGER_COMMENTS
        })
    }

    /// Returns true if the run has the news of this trigger.
    pub(crate) fn is_known(&self, sequence: u64) -> bool {
        self.received.iter().any(|heard| heard.sequence == sequence)
    }

    /// Returns true if the run accepts no more comments by authors without rights.
    pub(crate) fn is_full_of_strangers(&self) -> bool {
        let strangers = self.received.iter().filter(|heard| !heard.may_instruct());
        strangers.count() >= MAX_STRANGER_COMMENTS
    }

    /// Returns true if an author who may instruct has commented after this many turns. Other comments wait
    /// for the next turn and cause none.
    pub(crate) fn has_answer_since(&self, turns: usize) -> bool {
        self.received
            .iter()
            .any(|heard| heard.after_turns >= turns && heard.may_instruct())
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
        for heard in &mut self.received {
            heard.after_turns = heard.after_turns.min(turns);
        }
    }
}
