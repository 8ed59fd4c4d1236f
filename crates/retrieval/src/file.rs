//! Files in the index: a path and the id of a content, and the definitions that a parser finds in it.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// Id of a file's content (SHA-1), as git computes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId(pub [u8; 20]);

impl BlobId {
    /// Parses 40 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let id = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
        <[u8; 20]>::try_from(id).ok().map(Self)
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// File of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Path relative to the root, with `/` as the separator.
    pub path: String,
    /// Id of its content.
    pub blob: BlobId,
}

/// Source of contents and their definitions.
pub trait ContentSource {
    /// Reads a content of at most `max` bytes.
    ///
    /// # Errors
    /// See [`SharedReadFailure`].
    fn read(&mut self, blob: BlobId, max: u64) -> Result<Vec<u8>, SharedReadFailure>;

    /// Definitions of a text in their order; empty when its language is unknown or parsing fails.
    fn outline(&mut self, path: &str, text: &str) -> Vec<CodeDefinition>;
}

/// Reason why a content was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedReadFailure {
    /// The content is longer than the limit.
    TooLarge,
    /// The content is missing or cannot be read now; the next update tries again.
    Missing,
}

/// Function, class or type that a parser found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeDefinition {
    /// Name of the definition.
    pub name: String,
    /// First line, from 1.
    pub line: usize,
    /// Last line, from 1.
    pub end: usize,
    /// Number of definitions that enclose it.
    pub depth: usize,
    /// Beginning of the definition, with its parameters.
    pub signature: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_id_parses_only_its_format() {
        let text = "00ff10a0b0c0d0e0f00102030405060708090a0b";
        assert_eq!(BlobId::from_hex(text).unwrap().to_string(), text);
        for wrong in ["", "00", &"zz".repeat(20), &"é".repeat(20)] {
            assert_eq!(BlobId::from_hex(wrong), None, "{wrong}");
        }
    }
}
