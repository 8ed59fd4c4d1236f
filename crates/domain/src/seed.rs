//! Code that a ticket may be about.

use serde::{Deserialize, Serialize};

/// Some lines of a file, and why they may matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSeed {
    /// Relative to the root.
    pub path: String,
    /// First and last line, from 1; absent: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// The name or heading that fits best; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// 0 to 100; to be compared within one answer only.
    pub score: u32,
    /// In words.
    pub reason: String,
}
