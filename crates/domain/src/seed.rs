//! Code that a ticket may be about.

use serde::{Deserialize, Serialize};

/// Lines of a file with the reason why they may be relevant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSeed {
    /// Path relative to the root.
    pub path: String,
    /// First and last line, from 1; absent: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// The best matching name or heading; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// Score from 0 to 100, comparable only within one answer.
    pub score: u32,
    /// Reason for the match, for people.
    pub reason: String,
}
