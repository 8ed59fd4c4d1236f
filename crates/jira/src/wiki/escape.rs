//! Escapes for text that wiki markup must show literally.

/// Context of a text in wiki markup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextContext {
    /// Paragraph, heading, item or cell.
    Text,
    /// Link text or monospaced text, where backslashes do not escape the marks.
    Marked,
}

/// Escapes all markup in a text. `before` is the previous character on its line; `None` at the start of the
/// line.
pub(super) fn escape_text(text: &str, before: Option<char>, place: TextContext) -> String {
    let text: Vec<char> = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut before) = (0, before);
    if before.is_none() {
        at = escape_block_word(&text, &mut out);
        before = at.checked_sub(1).map(|last| text[last]);
    }
    while let Some(&c) = text.get(at) {
        let url = measure_address(&text[at..], before);
        if url > 0 {
            out.extend(&text[at..at + url]);
            at += url;
        } else {
            escape_character(c, before, &text[at + 1..], place, &mut out);
            at += 1;
        }
        before = Some(text[at - 1]);
    }
    out
}

/// Escapes `h1.` and `bq.` at the start of a line and returns its length.
fn escape_block_word(text: &[char], out: &mut String) -> usize {
    let is_block = matches!(text, ['h', '1'..='6', '.', ..] | ['b', 'q', '.', ..]);
    if is_block {
        out.extend(&text[..2]);
        out.push_str("&#46;");
        return 3;
    }
    0
}

/// Length of a web address that starts here and needs no escape; 0 without one.
fn measure_address(text: &[char], before: Option<char>) -> usize {
    let begins = |scheme: &str| text.iter().take(scheme.len()).copied().eq(scheme.chars());
    let is_apart = before.is_none_or(|c| c.is_whitespace() || c == '(');
    if !is_apart || !(begins("http://") || begins("https://")) {
        return 0;
    }
    let is_plain = |c: &&char| c.is_ascii_alphanumeric() || ":/.%=#_-,@?".contains(**c);
    text.iter().take_while(is_plain).count()
}

fn escape_character(c: char, before: Option<char>, after: &[char], place: TextContext, out: &mut String) {
    let next = after.first().copied();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_space = |c: Option<char>| c.is_some_and(char::is_whitespace);
    let is_inside = is_word(before) && is_word(next);
    // Within a word (`foo_bar`, `re-run`) these are not marks for Jira, so the text stays readable.
    let acts = match c {
        '\\' => return out.push_str("&#92;"),
        '&' if is_entity(after) => return out.push_str("&amp;"),
        // No backslash escapes these there, but numeric entities do.
        '{' | '}' | '[' | ']' | '|' if place == TextContext::Marked => {
            return out.push_str(&format!("&#{};", u32::from(c)));
        }
        '{' | '}' | '[' | ']' | '|' | '*' | '^' | '~' => true,
        '_' => !is_inside,
        '-' | '+' => !(is_inside || is_space(before) && is_space(next)),
        '?' => before == Some('?') || next == Some('?'),
        '!' => !is_space(next),
        '#' => before.is_none(),
        // A backslash does not prevent Jira from showing these as emoticons, a numeric entity does.
        '(' if is_emoticon(after) => return out.push_str("&#40;"),
        ':' | ';' if matches!(next, Some(')' | '(' | 'D' | 'P')) => {
            return out.push_str(&format!("&#{};", u32::from(c)));
        }
        _ => false,
    };
    if acts {
        out.push('\\');
    }
    out.push(c);
}

/// True when an `&` before this text would be parsed as an entity.
fn is_entity(after: &[char]) -> bool {
    let name = after
        .iter()
        .take_while(|c| c.is_ascii_alphanumeric() || **c == '#');
    let length = name.count();
    (1..=10).contains(&length) && after.get(length) == Some(&';')
}

/// True when a `(` before this text would begin one of Jira's emoticons, such as `(x)`.
fn is_emoticon(after: &[char]) -> bool {
    let word: String = after.iter().take_while(|c| **c != ')').take(8).collect();
    let known = [
        "y", "n", "i", "/", "x", "!", "+", "-", "?", "on", "off", "*", "*r", "*g", "*b", "*y", "flag",
        "flagoff",
    ];
    known.contains(&word.as_str())
}

/// Percent-encodes a URL for the target of a link.
pub(super) fn encode_target(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for c in address.chars() {
        if c.is_whitespace() || c.is_control() || "|[]{}\\^\"<>!*".contains(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}
