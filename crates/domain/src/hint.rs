//! Hints that the planner adds for the model to the results of its calls.

use serde::{Deserialize, Serialize};

use crate::RunLimits;

/// A hint of the planner for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelHint {
    /// The model repeats its calls without new results.
    Repeating(TurnRepetition),
    /// The run has used a large part of a limit.
    Budget {
        /// Used part in percent: 50, 80 or 95. After 95 the planner accepts only the tools that end the work.
        used: u8,
        /// Number of remaining turns.
        turns: u32,
        /// Remaining amounts of the other limits.
        left: RunLimits,
    },
}

impl ModelHint {
    /// The name in listings.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Repeating(_) => "repeating",
            Self::Budget { .. } => "budget",
        }
    }
}

/// A sequence of similar turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRepetition {
    /// Kind of the similarity.
    pub kind: RepetitionKind,
    /// Number of similar turns.
    pub turns: u32,
    /// The called tools, each once, by the names that the model wrote, truncated.
    pub tools: Vec<String>,
}

/// Kind of similarity between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepetitionKind {
    /// The same calls with the same results, while the files did not change.
    Same,
    /// Two alternating turns: the same calls with the same results, and the files return to an earlier state.
    Alternating,
    /// Calls that no tool could parse.
    Malformed,
    /// Replies that reached the model's token limit without a tool call.
    Truncated,
    /// The conversation needs another summary although no file changed since the last one.
    Summaries,
}
