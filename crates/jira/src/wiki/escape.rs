//! Text that wiki markup shows as it is.

/// What a text stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A paragraph, a heading, an item or a cell.
    Text,
    /// A link's text or monospaced text, whose own marks no backslash escapes.
    Marked,
}

/// A text with everything escaped that Jira would act on. `before` is what stands before it on its line; nothing at the begin.
pub(super) fn escaped(text: &str, before: Option<char>, place: Place) -> String {
    let text: Vec<char> = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut before) = (0, before);
    if before.is_none() {
        at = block_word(&text, &mut out);
        before = at.checked_sub(1).map(|last| text[last]);
    }
    while let Some(&c) = text.get(at) {
        let url = address(&text[at..], before);
        if url > 0 {
            out.extend(&text[at..at + url]);
            at += url;
        } else {
            one(c, before, &text[at + 1..], place, &mut out);
            at += 1;
        }
        before = Some(text[at - 1]);
    }
    out
}

/// `h1.` and `bq.` at the begin of a line; gives how long it is.
fn block_word(text: &[char], out: &mut String) -> usize {
    let is_block = matches!(text, ['h', '1'..='6', '.', ..] | ['b', 'q', '.', ..]);
    if is_block {
        out.extend(&text[..2]);
        out.push_str("&#46;");
        return 3;
    }
    0
}

/// How long the web address is that begins here and needs no escape; 0 without one.
fn address(text: &[char], before: Option<char>) -> usize {
    let begins = |scheme: &str| text.iter().take(scheme.len()).copied().eq(scheme.chars());
    let is_apart = before.is_none_or(|c| c.is_whitespace() || c == '(');
    if !is_apart || !(begins("http://") || begins("https://")) {
        return 0;
    }
    let is_plain = |c: &&char| c.is_ascii_alphanumeric() || ":/.%=#_-,@?".contains(**c);
    text.iter().take_while(is_plain).count()
}

fn one(c: char, before: Option<char>, after: &[char], place: Place, out: &mut String) {
    let next = after.first().copied();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_space = |c: Option<char>| c.is_some_and(char::is_whitespace);
    let is_inside = is_word(before) && is_word(next);
    let acts = match c {
        '\\' => return out.push_str("&#92;"),
        '&' if is_entity(after) => return out.push_str("&amp;"),
        '{' | '}' | '[' | ']' | '|' if place == Place::Marked => {
            return out.push_str(&format!("&#{};", u32::from(c)));
        }
        '{' | '}' | '[' | ']' | '|' | '*' | '^' | '~' => true,
        '_' => !is_inside,
        '-' | '+' => !(is_inside || is_space(before) && is_space(next)),
        '?' => before == Some('?') || next == Some('?'),
        '!' => !is_space(next),
        '#' => before.is_none(),
        // No backslash keeps these from becoming pictures.
        '(' if is_picture(after) => return out.push_str("&#40;"),
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

/// Whether an `&` before this would be read as a character's name or number.
fn is_entity(after: &[char]) -> bool {
    let name = after
        .iter()
        .take_while(|c| c.is_ascii_alphanumeric() || **c == '#');
    let length = name.count();
    (1..=10).contains(&length) && after.get(length) == Some(&';')
}

/// Whether a `(` before this begins one of Jira's pictures, such as `(x)`.
fn is_picture(after: &[char]) -> bool {
    let word: String = after.iter().take_while(|c| **c != ')').take(8).collect();
    let known = [
        "y", "n", "i", "/", "x", "!", "+", "-", "?", "on", "off", "*", "*r", "*g", "*b", "*y", "flag",
        "flagoff",
    ];
    known.contains(&word.as_str())
}

/// An address as the target of a link.
pub(super) fn target(address: &str) -> String {
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
