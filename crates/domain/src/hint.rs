//! What the planner tells the model beside the results of its calls.

use serde::{Deserialize, Serialize};

use crate::RunLimits;

/// A word of the planner to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Hint {
    /// The model does the same again and learns nothing from it.
    Repeating(Repetition),
    /// A good part of a limit is used up.
    Budget {
        /// The part, in percent: 50, 80 or 95. After 95 only the tools that end the work are accepted.
        used: u8,
        /// Turns that are left.
        turns: u32,
        /// What is left of the other limits.
        left: RunLimits,
    },
}

impl Hint {
    /// The name in listings.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Repeating(_) => "repeating",
            Self::Budget { .. } => "budget",
        }
    }
}

/// Turns in a row that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// In what.
    pub kind: RepetitionKind,
    /// How many.
    pub turns: u32,
    /// The tools that were called, each once; names as the model wrote them, cut.
    pub tools: Vec<String>,
}

/// In what turns are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepetitionKind {
    /// The same calls with the same results, while the files stayed the same.
    Same,
    /// Two turns take turns: the same calls with the same results, and the files come back to what they were.
    Alternating,
    /// Calls that no tool could take.
    Malformed,
    /// Replies that reached the model's token limit and called no tool.
    Truncated,
    /// The conversation would be summed up again although no file changed since the last summary.
    Summaries,
}
