//! Hexadecimal encoding and SHA-256 digests.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::digest::{SHA256, digest};

/// Decodes 64 digits of either case into 32 bytes.
pub(crate) fn decode_sha256(text: &str) -> Option<[u8; 32]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    <[u8; 32]>::try_from(bytes).ok()
}

/// SHA-256 of the bytes in lower-case digits.
pub(crate) fn hash_sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}
