//! Questions that only the participants of a ticket can answer.

use serde::{Deserialize, Serialize};

/// A question to the participants of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketQuestion {
    /// Text of a single question.
    pub text: String,
    /// Suggested answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}
