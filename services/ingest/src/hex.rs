//! Hexadecimal encoding and SHA-256 digests.

use ring::digest::{SHA256, digest};

/// Encodes bytes as lower-case digits.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Decodes 64 digits of either case into 32 bytes.
pub(crate) fn decode_sha256(text: &str) -> Option<[u8; 32]> {
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
pub(crate) fn hash_sha256(bytes: &[u8]) -> String {
    encode_hex(digest(&SHA256, bytes).as_ref())
}
