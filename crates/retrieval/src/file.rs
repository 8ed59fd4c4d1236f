//! Files in the index: a path and the id of a content, and the definitions that a parser finds in it.

use std::fmt;

/// Id of a file's content (SHA-1), as git computes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId(pub [u8; 20]);

impl BlobId {
    /// Parses 40 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut id = [0; 20];
        if text.len() != 40 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
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
