//! Broken input for property tests, derived from valid texts by random edits.

/// Number of cases per property: `PROPTEST_CASES`, or 4,000. `make fuzz` sets more.
#[expect(
    clippy::disallowed_methods,
    reason = "the variable that proptest reads by itself for its own default"
)]
pub fn fuzz_cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(4_000)
}

/// Edit of a text: the operation and two numbers that select position and content.
pub type InputEdit = (u8, u16, u16);

/// Tokens that break parsers: structure, lone surrogates, huge numbers, invalid UTF-8, hidden characters and
/// markup.
const TOKENS: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"\\",
    b"\\ud800",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"{}",
    b"[[[[[[[[",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "\u{202e}".as_bytes(),
    b"<!--",
    b"](",
    b"```",
    b"&#",
];

/// Applies the edits to the text, in order.
pub fn apply_edits(text: &[u8], edits: &[InputEdit]) -> Vec<u8> {
    edits
        .iter()
        .fold(text.to_vec(), |text, edit| apply_edit(text, *edit))
}

fn apply_edit(mut text: Vec<u8>, (what, first, second): InputEdit) -> Vec<u8> {
    // Positions wrap around, so that any two numbers are a valid edit.
    let at = usize::from(first) % (text.len() + 1);
    let end = (at + usize::from(second) % 40).min(text.len());
    match what % 6 {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => {
            let again = text[at..end].to_vec();
            text.splice(end..end, again);
        }
        3 => {
            let from = usize::from(second) % (text.len() + 1);
            let moved = text[from..(from + 20).min(text.len())].to_vec();
            text.splice(at..at, moved);
        }
        4 => {
            if let Some(byte) = text.get_mut(at) {
                // `max(1)` changes at least one bit.
                *byte ^= second.to_le_bytes()[0].max(1);
            }
        }
        _ => {
            let token = TOKENS[usize::from(second) % TOKENS.len()];
            text.splice(at..at, token.iter().copied());
        }
    }
    text
}
