//! Characters that a server splits between two events.
//!
//! A server that splits a text by bytes or by UTF-16 units sends half an emoji in one event and the other
//! half in the next: as invalid UTF-8, or as a lone surrogate, which strict JSON parsers refuse. Each half
//! is sealed in a character of the last private plane and joined when the text is complete. A real
//! character of that range is sealed byte by byte, so nothing is confused.

use std::borrow::Cow;

use serde_json::Value;

// First seal: 2,048 for surrogates, then 256 for bytes.
const SEALS: u32 = 0x0010_F000;
const BYTE_SEALS: u32 = SEALS + 0x0800;
const LAST_SEAL: u32 = BYTE_SEALS + 0xFF;
const HIGH: std::ops::RangeInclusive<u32> = 0xD800..=0xDBFF;
const LOW: std::ops::RangeInclusive<u32> = 0xDC00..=0xDFFF;

/// Decoder of UTF-8 that arrives in pieces.
#[derive(Default)]
pub(super) struct Utf8Decoder {
    /// Start of a character whose rest may be in the next piece.
    rest: Vec<u8>,
}

impl Utf8Decoder {
    /// Decodes the next piece; an incomplete character waits.
    pub(super) fn take(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut left = bytes.as_slice();
        loop {
            let (valid, broken) = match std::str::from_utf8(left) {
                Ok(valid) => (valid, None),
                Err(error) => {
                    let (valid, _) = left.split_at(error.valid_up_to());
                    // Never fails: the bytes are valid up to there.
                    (
                        std::str::from_utf8(valid).unwrap_or_default(),
                        Some(error.error_len()),
                    )
                }
            };
            seal_private_characters(valid, &mut text);
            let rest = &left[valid.len()..];
            match broken {
                None => return text,
                Some(None) => {
                    self.rest = rest.to_vec();
                    return text;
                }
                Some(Some(length)) => {
                    seal_bytes(&rest[..length], &mut text);
                    left = &rest[length..];
                }
            }
        }
    }

    /// Seals the incomplete rest when no piece follows.
    pub(super) fn finish(&mut self) -> String {
        let mut text = String::new();
        seal_bytes(&std::mem::take(&mut self.rest), &mut text);
        text
    }
}

/// Copies a text and seals real characters of the seals' range.
fn seal_private_characters(valid: &str, text: &mut String) {
    for c in valid.chars() {
        if (SEALS..=LAST_SEAL).contains(&u32::from(c)) {
            seal_bytes(c.encode_utf8(&mut [0; 4]).as_bytes(), text);
        } else {
            text.push(c);
        }
    }
}

fn seal_bytes(bytes: &[u8], text: &mut String) {
    text.extend(
        bytes
            .iter()
            .filter_map(|byte| char::from_u32(BYTE_SEALS + u32::from(*byte))),
    );
}

/// Seals the lone surrogates in JSON, so that a strict parser accepts it.
pub(super) fn seal_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut sealed = String::with_capacity(json.len());
    let mut left = json;
    while let Some(at) = left.find('\\') {
        let (before, escape) = left.split_at(at);
        sealed.push_str(before);
        left = match (
            parse_unit(escape),
            parse_unit(escape.get(6..).unwrap_or_default()),
        ) {
            (Some(high), Some(low)) if HIGH.contains(&high) && LOW.contains(&low) => {
                let pair = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                match char::from_u32(pair).filter(|_| (SEALS..=LAST_SEAL).contains(&pair)) {
                    Some(own) => seal_bytes(own.encode_utf8(&mut [0; 4]).as_bytes(), &mut sealed),
                    None => sealed.push_str(&escape[..12]),
                }
                &escape[12..]
            }
            (Some(lone), _) if HIGH.contains(&lone) || LOW.contains(&lone) => {
                sealed.extend(char::from_u32(SEALS + lone - 0xD800));
                &escape[6..]
            }
            _ => {
                // Copies the escaped character with its backslash, so that `\\` does not start a second
                // escape.
                let length = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                sealed.push_str(&escape[..length]);
                &escape[length..]
            }
        };
    }
    sealed.push_str(left);
    Cow::Owned(sealed)
}

/// Returns the UTF-16 unit of an escape such as `\u00e9` at the start of a text.
fn parse_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Joins the halves of a text; a half without the other one becomes U+FFFD.
pub(super) fn join_halves(text: String) -> String {
    let value = |c: char| u32::from(c);
    if !text.chars().any(|c| (SEALS..=LAST_SEAL).contains(&value(c))) {
        return text;
    }
    let mut joined = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match value(c) {
            seal @ SEALS..BYTE_SEALS => {
                let unit = |seal: u32| 0xD800 + seal - SEALS;
                let low = chars
                    .peek()
                    .map(|next| value(*next))
                    .filter(|next| (SEALS..BYTE_SEALS).contains(next));
                let pair = low
                    .map(unit)
                    .filter(|low| HIGH.contains(&unit(seal)) && LOW.contains(low));
                let whole = pair.and_then(|low| {
                    char::from_u32(0x1_0000 + ((unit(seal) - 0xD800) << 10) + (low - 0xDC00))
                });
                joined.push(whole.unwrap_or(char::REPLACEMENT_CHARACTER));
                if whole.is_some() {
                    chars.next();
                }
            }
            BYTE_SEALS..=LAST_SEAL => {
                let mut bytes = vec![sealed_byte(c)];
                while let Some(next) = chars.next_if(|next| (BYTE_SEALS..=LAST_SEAL).contains(&value(*next)))
                {
                    bytes.push(sealed_byte(next));
                }
                joined.push_str(&String::from_utf8_lossy(&bytes));
            }
            _ => joined.push(c),
        }
    }
    joined
}

/// Returns the byte of a byte seal.
fn sealed_byte(seal: char) -> u8 {
    // The 256 byte seals start at a multiple of 256.
    u32::from(seal).to_le_bytes()[0]
}

/// Joins the halves in every text of a JSON value.
pub(super) fn join_all(value: &mut Value) {
    match value {
        Value::String(text) => *text = join_halves(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(join_all),
        Value::Object(fields) => fields.values_mut().for_each(join_all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Parses JSON; lone surrogates become U+FFFD.
pub(super) fn read_json(text: &str) -> Result<Value, serde_json::Error> {
    let sealed = seal_surrogates(text);
    let mut value = serde_json::from_str(&sealed)?;
    if matches!(sealed, Cow::Owned(_)) {
        join_all(&mut value);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_surrogate_becomes_the_replacement_character() {
        for (text, read) in [
            (r#""cut \ud83d""#, "cut \u{fffd}"),
            (r#""\ude00 cut""#, "\u{fffd} cut"),
            (r#""\uD83D\uD83D\uDE00""#, "\u{fffd}\u{1f600}"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\ud83dx\ude00""#, "\u{fffd}x\u{fffd}"),
            (r#""\udbfc\udc00""#, "\u{10f000}"),
        ] {
            assert_eq!(read_json(text).unwrap(), json!(read), "{text}");
        }
        for broken in [r#""\ud83""#, r#""\ud83dé"#, r#""\u+d83""#, "\"\\", r"\ud"] {
            read_json(broken).unwrap_err();
        }
    }

    #[test]
    fn halves_in_two_events_are_joined() {
        let event = |text: &str| serde_json::from_str::<String>(&seal_surrogates(text)).unwrap();
        assert_eq!(
            join_halves(event(r#""a\ud83d""#) + &event(r#""\ude00b""#)),
            "a\u{1f600}b"
        );
        let mut pieces = Utf8Decoder::default();
        let wire = [b"\"\xf0\x9f\"".as_slice(), b"\"\x98\x80\""];
        let events = wire.map(|bytes| serde_json::from_str::<String>(&pieces.take(bytes)).unwrap());
        assert_eq!(join_halves(events.concat()), "\u{1f600}");
    }

    proptest! {
        #[test]
        fn valid_text_is_unchanged_in_any_pieces(text in ".*", ends in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let text = text + "\u{10f000}\u{10f8ff}";
            let mut ends: Vec<usize> = ends.iter().map(|end| end.index(text.len() + 1)).collect();
            ends.extend([0, text.len()]);
            ends.sort_unstable();
            let mut pieces = Utf8Decoder::default();
            let taken: String = ends.windows(2).map(|pair| pieces.take(&text.as_bytes()[pair[0]..pair[1]])).collect();
            prop_assert_eq!(join_halves(taken + &pieces.finish()), text);
        }

        #[test]
        fn units_cut_anywhere_give_what_was_meant(text in ".*", at in any::<prop::sample::Index>()) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let at = at.index(units.len() + 1);
            let event = |units: &[u16]| {
                let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
                serde_json::from_str::<String>(&seal_surrogates(&format!("\"{escaped}\""))).unwrap()
            };
            prop_assert_eq!(join_halves(event(&units[..at]) + &event(&units[at..])), text);
        }

        #[test]
        fn any_bytes_are_text_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut pieces = Utf8Decoder::default();
            let text = pieces.take(&bytes) + &pieces.finish();
            prop_assert_eq!(join_halves(text), String::from_utf8_lossy(&bytes).into_owned());
            let _ = read_json(&String::from_utf8_lossy(&bytes));
        }
    }
}
