//! What the planner tells the model beside the results of its calls.

use serde::{Deserialize, Serialize};

/// A word of the planner to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Hint {
    /// The model does the same again and learns nothing from it.
    Repeating(Repetition),
}

impl Hint {
    /// The name in listings.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Repeating(_) => "repeating",
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
}
