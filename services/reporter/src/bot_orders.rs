//! Detection of orders to other bots in a text.
//!
//! Prow, bors, Atlantis and many workflows read a comment's raw text line by line, including quotations, lists and code
//! fences. The account of Journeyman may have the right to give such an order.

use std::{
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use domain::text::is_hidden;

// Prefix of a line of code that begins with an order: inside of code, code style has no effect on bots.
pub(crate) const CODE_MARK: &str = "| ";

// First words or phrases that widely used bots accept without a slash, with an optional `@`. Bots that react only to
// `@name` are not listed, because every mention is put into code style.
const KNOWN: [&str; 15] = [
    "add to whitelist",
    "atlantis",
    "bors",
    "bors-servo",
    "build this please",
    "digger",
    "homu",
    "jenkins",
    "ok to test",
    "please retest",
    "recheck",
    "retest",
    "reverify",
    "terrateam",
    "test this please",
];

static CONFIGURED: OnceLock<Vec<String>> = OnceLock::new();
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let configured = CONFIGURED.get().into_iter().flatten();
    let all = KNOWN
        .iter()
        .map(|word| (*word).to_owned())
        .chain(configured.cloned());
    all.map(|word| word.trim().trim_start_matches('@').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
});

/// Adds the words of the setting `reporter.bot_words`. The process calls it once, before it writes the first text.
pub(crate) fn set_words(words: &[String]) {
    // A second call comes from another instance in the same process, with the same settings.
    let _ = CONFIGURED.set(words.to_vec());
}

/// Returns true for characters that a bot or a person skips at the start of a line.
pub(crate) fn is_skipped(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || is_hidden(c)
        || c.is_ascii_digit()
        || "><-*+#~_.()[]{}!:;,'\"=".contains(c)
}

/// Returns true if only skipped characters precede this position on its line.
pub(crate) fn is_line_start(text: &str, at: usize) -> bool {
    let line = text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    text[line..at].chars().all(|c| is_skipped(c) || c == '\\')
}

/// Returns true if an order can begin after this character. `../docs` and `3/x` are not orders.
pub(crate) fn may_begin_behind(before: Option<char>) -> bool {
    before.is_none_or(|c| !(c.is_ascii_digit() || c == '.'))
}

/// Returns the length of the order at the start of the text, in bytes; 0 without an order.
pub(crate) fn order_length(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix('/') {
        let word = rest
            .find(|c: char| !(c.is_alphanumeric() || "-_".contains(c)))
            .unwrap_or(rest.len());
        let is_word = rest.starts_with(char::is_alphabetic);
        // `/usr/bin` and `/index.html` are paths.
        let ends = !rest[word..].starts_with(['/', '.']) || rest[word..].starts_with(". ");
        return match is_word && ends {
            true => 1 + word,
            false => 0,
        };
    }
    let (sign, rest) = match text.strip_prefix('@') {
        Some(rest) => (1, rest),
        None => (0, text),
    };
    let lengths = WORDS.iter().filter_map(|word| phrase_length(rest, word));
    lengths.max().map_or(0, |length| sign + length)
}

/// Returns the length of a phrase at the start of the text, without regard to case and to the space between its
/// words.
fn phrase_length(text: &str, phrase: &str) -> Option<usize> {
    let mut rest = text;
    for (index, word) in phrase.split(' ').enumerate() {
        if index > 0 {
            let trimmed = rest.trim_start_matches([' ', '\t', '\u{a0}']);
            rest = (trimmed.len() < rest.len()).then_some(trimmed)?;
        }
        for wanted in word.chars() {
            let mut chars = rest.chars();
            chars
                .next()
                .filter(|c| c.to_lowercase().eq(wanted.to_lowercase()))?;
            rest = chars.as_str();
        }
    }
    let ends = rest
        .chars()
        .next()
        .is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == '-'));
    ends.then_some(text.len() - rest.len())
}

/// Returns the positions of orders at line starts, in a part of a text.
pub(crate) fn orders_in(text: &str, part: Range<usize>) -> Vec<usize> {
    line_starts(text, part)
        .filter(|at| order_length(&text[*at..]) > 0)
        .collect()
}

/// Returns the positions of orders in code. A mention with a following word also counts there, because code style
/// does not apply.
pub(crate) fn orders_in_code(text: &str, part: Range<usize>) -> Vec<usize> {
    let is_order = |at: &usize| order_length(&text[*at..]) > 0 || calls_somebody(&text[*at..]);
    line_starts(text, part).filter(is_order).collect()
}

/// Returns true if the line begins with `@login word`.
fn calls_somebody(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('@') else {
        return false;
    };
    let name = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_/".contains(c)))
        .unwrap_or(rest.len());
    let after = rest[name..]
        .strip_prefix([' ', '\t', ',', ':'])
        .unwrap_or_default();
    name > 0
        && after
            .trim_start_matches([' ', '\t'])
            .starts_with(char::is_alphanumeric)
}

/// Returns the position of the first visible character of each line in a part of a text.
fn line_starts(text: &str, part: Range<usize>) -> impl Iterator<Item = usize> + '_ {
    let mut at = part.start;
    let lines = text[part].split_inclusive(['\n', '\r']);
    let starts = lines.map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    starts.filter_map(move |(start, line)| {
        // The part may begin in the middle of a line, after prose.
        if !is_line_start(text, start) {
            return None;
        }
        let skipped = line.find(|c: char| !is_skipped(c))?;
        may_begin_behind(line[..skipped].chars().next_back()).then_some(start + skipped)
    })
}

/// Returns the code with a mark before each order at a line start.
pub(crate) fn guard_code(text: &str) -> String {
    let mut guarded = String::with_capacity(text.len());
    let mut copied = 0;
    for at in orders_in_code(text, 0..text.len()) {
        guarded.push_str(&text[copied..at]);
        guarded.push_str(CODE_MARK);
        copied = at;
    }
    guarded.push_str(&text[copied..]);
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_told_from_paths_and_prose() {
        for (text, length) in [
            ("/lgtm", 5),
            ("/LGTM\n", 5),
            ("/ok-to-test now", 11),
            ("/approve. Now", 8),
            ("bors r+", 4),
            ("Bors: try", 4),
            ("@bors r+", 5),
            ("atlantis apply", 8),
            ("@homu retry", 5),
            ("ok  to test", 11),
            ("recheck", 7),
            ("/usr/bin/env", 0),
            ("/index.html", 0),
            ("// a comment", 0),
            ("/* a comment", 0),
            ("/", 0),
            ("borscht", 0),
            ("ok, to test", 0),
            ("ann: look", 0),
        ] {
            assert_eq!(order_length(text), length, "{text}");
        }
    }

    #[test]
    fn code_lines_with_orders_get_a_mark() {
        let code = "@cache\ndef f():\n  /lgtm\n/usr/bin/x\n@app.route('/x')\n> bors r+\n@some-bot merge\n";
        let guarded =
            "@cache\ndef f():\n  | /lgtm\n/usr/bin/x\n@app.route('/x')\n> | bors r+\n| @some-bot merge\n";
        assert_eq!(guard_code(code), guarded);
        assert_eq!(guard_code(guarded), guarded);
    }
}
