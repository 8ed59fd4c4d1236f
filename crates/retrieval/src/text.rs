//! Lines of a text, and looking for one text in another.

/// A text by its lines; each keeps its line break.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Where each line begins, and the end of the text.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
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

    /// The line with this number, from 0; empty beyond the end.
    pub(crate) fn line(&self, at: usize) -> &'a str {
        self.text(at, at + 1)
    }

    /// Some lines, the end not included.
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

/// At most so many bytes, cut at the end of a character.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Whether one text stands in another, whatever the white space between words.
#[must_use]
pub fn quoted_in(text: &str, quote: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quote = plain(quote);
    !quote.is_empty() && (text.contains(&quote) || plain(text).contains(&quote))
}
