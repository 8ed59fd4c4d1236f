//! What is shown while it happens and never kept.

use serde::{Deserialize, Serialize};

use crate::CallId;

/// What a running tool has printed since the last piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveOutput {
    /// The call.
    pub call: CallId,
    /// The text; line ends and control characters are the command's.
    pub text: String,
}
