//! Why a request is skipped.

use serde::{Deserialize, Serialize};

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum SkipReason {
    /// The skip phrase stands in the ticket's text or in a comment.
    Phrase {
        /// The phrase, e.g. `[AGENT-SKIP]`.
        phrase: String,
        /// `description`, `summary` or `comment by <author>`.
        place: String,
    },
    /// The ticket has a skip label.
    Label {
        /// The label.
        label: String,
    },
    /// A pull request for the ticket exists already, ours or a person's.
    PullRequestExists {
        /// Link for people.
        url: String,
        /// Its author.
        author: String,
    },
}
