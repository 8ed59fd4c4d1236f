//! Encoding of any text as one token of a subject.

use std::fmt::Write as _;

use data_encoding::HEXUPPER;

/// Encodes a text as one subject token: `[A-Za-z0-9-]` unchanged, every other UTF-8 byte as `=HH`, the empty
/// text as `=`.
pub(crate) fn encode_token(text: &str) -> String {
    if text.is_empty() {
        return "=".to_owned();
    }
    let mut token = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            token.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(token, "={byte:02X}");
        }
    }
    token
}

/// Decodes a token that [`encode_token`] made; returns `None` for any other text.
pub(crate) fn decode_token(token: &str) -> Option<String> {
    if token == "=" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'=' => bytes.extend(HEXUPPER.decode(&[rest.next()?, rest.next()?]).ok()?),
            _ => bytes.push(byte),
        }
    }
    // Only the canonical form is accepted, so that two tokens never decode to the same text.
    String::from_utf8(bytes)
        .ok()
        .filter(|text| encode_token(text) == token)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_round_trips_as_token(text in any::<String>()) {
            let token = encode_token(&text);
            prop_assert!(!token.is_empty());
            prop_assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'='));
            prop_assert_eq!(decode_token(&token), Some(text));
        }

        #[test]
        fn what_decodes_is_the_one_spelling(token in "[A-Za-z0-9=.-]{0,12}") {
            if let Some(text) = decode_token(&token) {
                prop_assert_eq!(encode_token(&text), token);
            }
        }
    }
}
