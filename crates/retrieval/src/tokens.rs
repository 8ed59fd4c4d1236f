//! Words of code: each identifier as a whole and in its parts, in lower case.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Maximum length of a word in bytes; longer identifiers are data.
const MAX_WORD: usize = 80;
/// Minimum length of a word, in bytes.
const MIN_WORD: usize = 2;

/// Calls `each` for every word of a text, in lower case: an identifier as a whole, then its camel, snake and
/// digit parts if it has several.
pub(crate) fn each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut buffer = String::new();
    for word in text.split(|c: char| !is_word(c)) {
        let word = word.trim_matches(['_', '$']);
        if word.len() < MIN_WORD || word.len() > MAX_WORD {
            continue;
        }
        lower_into(word, &mut buffer);
        each(&buffer);
        if is_whole(word) {
            continue;
        }
        for part in split_identifier(word) {
            if part.len() >= MIN_WORD && part.len() < word.len() {
                lower_into(part, &mut buffer);
                each(&buffer);
            }
        }
    }
}

/// Words of a text, each as often as it occurs.
#[must_use]
pub fn collect_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// True when a word has one part: lower-case letters, possibly after a capital.
fn is_whole(word: &str) -> bool {
    let rest = word.as_bytes().get(1..).unwrap_or_default();
    word.is_ascii() && rest.iter().all(u8::is_ascii_lowercase)
}

fn lower_into(word: &str, buffer: &mut String) {
    buffer.clear();
    if word.is_ascii() {
        buffer.push_str(word);
        buffer.make_ascii_lowercase();
    } else {
        buffer.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// Parts of an identifier: `HTTP`, `Server`, `2`, `name` for `HTTPServer2_name`.
pub(crate) fn split_identifier(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['_', '$']);
        let end = part_end(rest)?;
        let (part, more) = rest.split_at(end);
        rest = more;
        Some(part)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Upper,
    Lower,
    Digit,
    Joint,
}

fn classify_char(c: char) -> CharClass {
    match c {
        '_' | '$' => CharClass::Joint,
        c if c.is_uppercase() => CharClass::Upper,
        c if c.is_numeric() => CharClass::Digit,
        _ => CharClass::Lower,
    }
}

/// End of the first part; `None` for an empty text.
fn part_end(text: &str) -> Option<usize> {
    let mut chars = text
        .char_indices()
        .map(|(at, c)| (at, classify_char(c)))
        .peekable();
    let (_, mut last) = chars.next()?;
    let mut run = 1;
    while let Some((at, now)) = chars.next() {
        let next = chars.peek().map(|(_, class)| *class);
        let ends = match (last, now) {
            (_, CharClass::Joint) => true,
            (CharClass::Upper, CharClass::Lower) => false,
            // The last of several capitals begins the next part.
            (CharClass::Upper, CharClass::Upper) => run >= 1 && next == Some(CharClass::Lower),
            (before, now) => before != now,
        };
        if ends {
            return Some(at);
        }
        run += 1;
        last = now;
    }
    Some(text.len())
}

/// Tokenizer of the index, based on [`each_word`].
#[derive(Clone, Default)]
pub(crate) struct CodeTokenizer {
    words: WordBuffer,
}

#[derive(Clone, Default)]
struct WordBuffer {
    /// All words in sequence, and the end of each.
    text: String,
    ends: Vec<usize>,
    next: usize,
    token: Token,
}

impl Tokenizer for CodeTokenizer {
    type TokenStream<'a> = CodeStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> CodeStream<'a> {
        // The buffers are reused for all texts, because the index tokenizes every chunk.
        let words = &mut self.words;
        words.text.clear();
        words.ends.clear();
        words.next = 0;
        words.token.reset();
        let WordBuffer { text: all, ends, .. } = words;
        each_word(text, |word| {
            all.push_str(word);
            ends.push(all.len());
        });
        CodeStream { words }
    }
}

/// Token stream of one text.
pub(crate) struct CodeStream<'a> {
    words: &'a mut WordBuffer,
}

impl TokenStream for CodeStream<'_> {
    fn advance(&mut self) -> bool {
        let words = &mut *self.words;
        let Some(end) = words.ends.get(words.next).copied() else {
            return false;
        };
        let start = words
            .next
            .checked_sub(1)
            .and_then(|before| words.ends.get(before))
            .copied()
            .unwrap_or_default();
        words.token.text.clear();
        words.token.text.push_str(&words.text[start..end]);
        // The index stores no positions, so the offsets of the token are not set.
        words.token.position = words.next;
        words.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.words.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.words.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_yields_whole_and_lower_parts() {
        for (text, words) in [
            ("cart", vec!["cart"]),
            ("cartTotal", vec!["carttotal", "cart", "total"]),
            ("cart_total", vec!["cart_total", "cart", "total"]),
            ("HTTPServer", vec!["httpserver", "http", "server"]),
            (
                "parseHTTP2Frame",
                vec!["parsehttp2frame", "parse", "http", "frame"],
            ),
            ("sha256sum", vec!["sha256sum", "sha", "256", "sum"]),
            ("MAX_DEPTH", vec!["max_depth", "max", "depth"]),
            ("a.b(cd)", vec!["cd"]),
            ("__init__", vec!["init"]),
            ("Größe_neu", vec!["größe_neu", "größe", "neu"]),
        ] {
            assert_eq!(collect_words(text), words, "{text}");
        }
    }

    #[test]
    fn a_very_long_word_is_left_out() {
        assert!(collect_words(&"x".repeat(MAX_WORD + 1)).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn index_tokens_match_lower_case_words(text in "\\PC{0,60}") {
            let mut tokenizer = CodeTokenizer::default();
            let mut stream = tokenizer.token_stream(&text);
            let mut seen = Vec::new();
            while stream.advance() {
                seen.push(stream.token().text.clone());
            }
            proptest::prop_assert_eq!(&seen, &collect_words(&text));
            for word in seen {
                proptest::prop_assert!(word.len() >= 2);
                let lower: String = word.chars().flat_map(char::to_lowercase).collect();
                // Some letters change again when lower-cased twice. That applies to texts and queries alike.
                proptest::prop_assert!(!word.chars().any(|c| c.is_ascii_uppercase()) && !lower.is_empty());
            }
        }
    }
}
