//! Live output, which is sent to viewers and never stored.

use serde::{Deserialize, Serialize};

use crate::CallId;

/// Output of a running tool since the previous piece.
// The message goes over a subject without a stream, so the planner never waits for a viewer. The journal
// contains the complete result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveOutput {
    /// Id of the tool call.
    pub call: CallId,
    /// The output text, with the line ends and control characters of the command.
    pub text: String,
}
