//! Line ends of text files as git converts them (`text`, `crlf` and `eol` in `.gitattributes`), with
//! `core.autocrlf=false` and `core.eol=lf`.

use std::borrow::Cow;

/// Conversion of line ends between a tree and a worktree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineEndRule {
    /// The bytes stay as they are.
    #[default]
    AsIs,
    /// The file is text.
    Text { has_crlf_in_worktree: bool },
    /// Git decides by the content whether the file is text.
    Auto { has_crlf_in_worktree: bool },
}

/// Counts of a content, from which git decides whether it is text.
#[derive(Default)]
struct TextStats {
    crlf: usize,
    lone_cr: usize,
    lone_lf: usize,
    nul: usize,
    printable: usize,
    nonprintable: usize,
}

impl TextStats {
    fn of(content: &[u8]) -> Self {
        let mut stats = Self::default();
        let mut bytes = content.iter().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\r' if bytes.next_if(|next| **next == b'\n').is_some() => stats.crlf += 1,
                b'\r' => stats.lone_cr += 1,
                b'\n' => stats.lone_lf += 1,
                0 => {
                    stats.nul += 1;
                    stats.nonprintable += 1;
                }
                // Backspace, tab, form feed and escape.
                0x08 | b'\t' | 0x0c | 0x1b => stats.printable += 1,
                0x7f | 0x01..=0x1f => stats.nonprintable += 1,
                0x20..=0x7e | 0x80..=0xff => stats.printable += 1,
            }
        }
        // The end-of-file mark of DOS does not count.
        if content.last() == Some(&0x1a) {
            stats.nonprintable = stats.nonprintable.saturating_sub(1);
        }
        stats
    }

    fn is_binary(&self) -> bool {
        self.lone_cr > 0 || self.nul > 0 || self.printable / 128 < self.nonprintable
    }
}

impl LineEndRule {
    /// True when a checkout may change the bytes.
    pub(super) const fn has_crlf_in_worktree(self) -> bool {
        match self {
            Self::AsIs => false,
            Self::Text { has_crlf_in_worktree } | Self::Auto { has_crlf_in_worktree } => has_crlf_in_worktree,
        }
    }

    /// Returns the content as git stores it. `read_indexed` returns the content of the path in the index: git
    /// leaves files alone that it guesses to be text and that have CRLF there.
    pub(super) fn to_tree<'a>(
        self,
        content: Cow<'a, [u8]>,
        read_indexed: &dyn Fn() -> Option<Vec<u8>>,
    ) -> Cow<'a, [u8]> {
        if !content.contains(&b'\r') {
            return content;
        }
        match self {
            Self::AsIs => content,
            Self::Text { .. } => remove_cr_before_lf(&content).into(),
            Self::Auto { .. } => {
                let stats = TextStats::of(&content);
                let is_left = stats.crlf == 0
                    || stats.is_binary()
                    || read_indexed().is_some_and(|indexed| has_crlf_text(&indexed));
                if is_left {
                    content
                } else {
                    remove_cr_before_lf(&content).into()
                }
            }
        }
    }

    /// Returns the content as git checks it out.
    pub(super) fn to_worktree<'a>(self, content: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        if !self.has_crlf_in_worktree() || !content.contains(&b'\n') {
            return content;
        }
        let stats = TextStats::of(&content);
        let is_left = match self {
            Self::AsIs => true,
            Self::Text { .. } => stats.lone_lf == 0,
            Self::Auto { .. } => {
                stats.lone_lf == 0 || stats.crlf > 0 || stats.lone_cr > 0 || stats.is_binary()
            }
        };
        if is_left {
            return content;
        }
        let mut converted = Vec::with_capacity(content.len() + stats.lone_lf);
        let mut last = 0;
        for byte in content.iter().copied() {
            if byte == b'\n' && last != b'\r' {
                converted.push(b'\r');
            }
            converted.push(byte);
            last = byte;
        }
        converted.into()
    }
}

fn has_crlf_text(content: &[u8]) -> bool {
    if !content.contains(&b'\r') {
        return false;
    }
    let stats = TextStats::of(content);
    stats.crlf > 0 && !stats.is_binary()
}

fn remove_cr_before_lf(content: &[u8]) -> Vec<u8> {
    let mut bytes = content.iter().copied().peekable();
    let mut converted = Vec::with_capacity(content.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\r' || bytes.peek() != Some(&b'\n') {
            converted.push(byte);
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: LineEndRule = LineEndRule::Text {
        has_crlf_in_worktree: true,
    };
    const AUTO: LineEndRule = LineEndRule::Auto {
        has_crlf_in_worktree: true,
    };

    fn store(ends: LineEndRule, content: &str, indexed: Option<&str>) -> String {
        let read = || indexed.map(|text| text.as_bytes().to_vec());
        let stored = ends.to_tree(Cow::Borrowed(content.as_bytes()), &read);
        String::from_utf8(stored.into_owned()).unwrap()
    }

    fn check_out(ends: LineEndRule, content: &str) -> String {
        let written = ends.to_worktree(Cow::Borrowed(content.as_bytes()));
        String::from_utf8(written.into_owned()).unwrap()
    }

    #[test]
    fn text_is_stored_with_lf() {
        for (content, stored) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\rb\r\n", "a\rb\n"),
            ("a\r\r\n", "a\r\n"),
            ("a\r", "a\r"),
            ("a\nb", "a\nb"),
        ] {
            assert_eq!(store(TEXT, content, None), stored, "{content:?}");
        }
    }

    #[test]
    fn guessed_text_with_crlf_in_index_stays() {
        assert_eq!(store(AUTO, "a\r\n", None), "a\n");
        assert_eq!(store(AUTO, "a\r\n", Some("a\n")), "a\n");
        assert_eq!(store(AUTO, "a\r\n", Some("b\r\n")), "a\r\n");
        assert_eq!(store(AUTO, "a\r\n", Some("b\r\n\0")), "a\n");
        assert_eq!(store(TEXT, "a\r\n", Some("b\r\n")), "a\n");
    }

    #[test]
    fn guessed_binary_content_stays() {
        for content in ["a\r\n\0", "a\r\nb\rc", "\u{1}\u{2}\r\n"] {
            assert_eq!(store(AUTO, content, None), content);
            assert_eq!(check_out(AUTO, content), content);
        }
    }

    #[test]
    fn checkout_adds_missing_cr_only() {
        for (content, text, auto) in [
            ("a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n"),
            ("a\r\nb\n", "a\r\nb\r\n", "a\r\nb\n"),
            ("a\r\n", "a\r\n", "a\r\n"),
            ("a", "a", "a"),
        ] {
            assert_eq!(check_out(TEXT, content), text, "{content:?}");
            assert_eq!(check_out(AUTO, content), auto, "{content:?}");
        }
    }
}
