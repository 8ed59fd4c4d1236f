//! A line of a timeline while it is put together.

use domain::text::{capped, visible};

use super::{Tone, Who};

/// Longest headline.
const HEAD: usize = 160;
/// Longest text that is folded up below it; the entry itself has the whole.
const FOLDED: usize = 4_000;

/// What a person reads of an entry.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) who: Who,
    pub(super) tone: Tone,
    pub(super) head: String,
    /// More text, to fold up.
    pub(super) more: Option<String>,
}

impl Line {
    pub(super) fn new(who: Who, head: impl AsRef<str>) -> Self {
        Self {
            who,
            tone: Tone::Plain,
            head: short(head.as_ref()),
            more: None,
        }
    }

    /// What went wrong, and how.
    pub(super) fn failed(who: Who, what: &str, detail: &str) -> Self {
        Self::new(who, format!("{what}: {detail}"))
            .rest_of(detail)
            .tone(Tone::Bad)
    }

    pub(super) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// The whole of a text that the headline has, where it was cut or made one line there.
    pub(super) fn rest_of(self, text: &str) -> Self {
        match self.head.ends_with('…') || text.trim().contains('\n') {
            true => self.more(text),
            false => self,
        }
    }

    /// Text that the headline has nothing of.
    pub(super) fn more(mut self, text: &str) -> Self {
        let is_some = !text.trim().is_empty();
        self.more = is_some.then(|| visible(&capped(text, FOLDED)));
        self
    }
}

/// One line of it.
fn short(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&capped(&flat, HEAD))
}

/// An amount of money, to a hundredth of a cent: a call costs little.
pub fn dollars(micros: u64) -> String {
    let parts = micros / 100;
    format!("${}.{:04}", parts / 10_000, parts % 10_000)
}
