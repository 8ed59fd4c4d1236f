//! Hexadecimal digits and SHA-256 in them.

use ring::digest::{SHA256, digest};

/// Lower-case digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// The 32 bytes of 64 digits in either case.
pub(crate) fn decode(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// SHA-256 of the bytes in lower-case digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    encode(digest(&SHA256, bytes).as_ref())
}
