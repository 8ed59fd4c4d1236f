//! Ids of git commits and trees.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::identity::{InvalidId, text_serde};

/// A git commit id: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

impl CommitId {
    /// All hexadecimal digits of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, for people.
    pub fn short(&self) -> &str {
        // In range: an id has at least 40 ASCII digits.
        &self.0[..12]
    }
}

impl CommitId {
    /// The id of 40 zeros that git uses for a missing commit.
    pub fn null() -> Self {
        Self("0".repeat(40))
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CommitId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Upper-case digits are rejected, so that an id has one spelling.
        let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        // The lengths of SHA-1 and SHA-256, the two object formats of git.
        if matches!(text.len(), 40 | 64) && is_hex {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId::new(
                text,
                "a commit id of 40 or 64 lower-case hexadecimal digits",
            ))
        }
    }
}
text_serde!(CommitId);

/// A git tree's id: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits. Evidence holds for this tree
/// alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreeId(CommitId);

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TreeId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = |_| InvalidId::new(text, "a tree id of 40 or 64 lower-case hexadecimal digits");
        text.parse().map(Self).map_err(shape)
    }
}
text_serde!(TreeId);
