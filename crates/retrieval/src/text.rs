//! Lines of a text, and search for a quotation.

/// Text with the positions of its lines; each line keeps its line break.
pub(crate) struct SharedTextLines<'a> {
    text: &'a str,
    /// Start of each line, and the end of the text.
    starts: Vec<usize>,
}

impl<'a> SharedTextLines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut starts: Vec<usize> = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts }
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Line by its number, from 0; empty beyond the end.
    pub(crate) fn line(&self, at: usize) -> &'a str {
        self.text(at, at + 1)
    }

    /// Lines from `start` to `end`, exclusive.
    pub(crate) fn text(&self, start: usize, end: usize) -> &'a str {
        let place = |at: usize| self.starts.get(at).copied().unwrap_or(self.text.len());
        self.text.get(place(start)..place(end)).unwrap_or_default()
    }

    pub(crate) fn is_blank(&self, start: usize, end: usize) -> bool {
        self.text(start, end).trim().is_empty()
    }

    pub(crate) fn bytes(&self, start: usize, end: usize) -> usize {
        self.text(start, end).len()
    }
}

/// Truncates a text to at most `max` bytes, at a character boundary.
pub(crate) fn truncate_text(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// True when a text contains a quotation. White space between words may differ.
#[must_use]
pub fn quoted_in(text: &str, quote: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quote = plain(quote);
    !quote.is_empty() && (text.contains(&quote) || plain(text).contains(&quote))
}
