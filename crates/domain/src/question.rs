//! What only the people of a ticket can answer.

use serde::{Deserialize, Serialize};

/// A question to the people of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// One question.
    pub text: String,
    /// Answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}
