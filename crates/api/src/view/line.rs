//! Builder for a line of a timeline.

use domain::text::{escape_hidden, format_count, truncate_text};

use super::{Tone, Who};

// Maximum characters of a headline.
const HEAD: usize = 160;
// Maximum characters of the folded text; the entry itself contains the whole text.
const FOLDED: usize = 4_000;

/// Text of an entry for people.
#[derive(Debug)]
pub(super) struct TimelineLine {
    pub(super) who: Who,
    pub(super) tone: Tone,
    pub(super) head: String,
    // Additional text, which clients can fold.
    pub(super) more: Option<String>,
}

impl TimelineLine {
    pub(super) fn new(who: Who, head: impl AsRef<str>) -> Self {
        Self {
            who,
            tone: Tone::Plain,
            head: shorten_headline(head.as_ref()),
            more: None,
        }
    }

    /// Creates the line of a failure with its details.
    pub(super) fn failed(who: Who, what: &str, detail: &str) -> Self {
        Self::new(who, format!("{what}: {detail}"))
            .rest_of(detail)
            .tone(Tone::Bad)
    }

    pub(super) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Adds the whole text when the headline contains it truncated or with joined lines.
    pub(super) fn rest_of(self, text: &str) -> Self {
        if self.head.ends_with('…') || text.trim().contains('\n') {
            self.more(text)
        } else {
            self
        }
    }

    /// Adds text that the headline does not contain.
    pub(super) fn more(mut self, text: &str) -> Self {
        let is_some = !text.trim().is_empty();
        // Text of others may contain terminal sequences, so hidden characters are spelled out.
        self.more = is_some.then(|| escape_hidden(&truncate_text(text, FOLDED)));
        self
    }
}

/// Returns a text as one headline.
fn shorten_headline(text: &str) -> String {
    // Lists show one line per entry, so line breaks of foreign text must not begin another one.
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Escaped last, so that the cut cannot fall into an escape. The result may be longer than the limit.
    escape_hidden(&truncate_text(&flat, HEAD))
}

/// Formats the length of a list with the noun of its entries.
pub(super) fn format_length<T>(list: &[T], noun: &str) -> String {
    format_count(list.len() as u64, noun)
}

/// Formats an amount of money to a hundredth of a cent, because a single call costs little.
pub fn format_dollars(micros: u64) -> String {
    // Integers, because the sum of many calls must not show rounding errors of binary fractions.
    let parts = micros / 100;
    format!("${}.{:04}", parts / 10_000, parts % 10_000)
}
