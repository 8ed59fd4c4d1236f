//! SHA-256 and hexadecimal text.

use std::fmt::Write as _;

/// Hashes a key of any length to a short token: the first 32 hexadecimal digits of its SHA-256.
pub(crate) fn key_hash(key: &str) -> String {
    let mut digest = sha256_hex(key.as_bytes());
    digest.truncate(32);
    digest
}

/// SHA-256 in lower-case hexadecimal, 64 digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    encode_hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// Bytes in lower-case hexadecimal.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
