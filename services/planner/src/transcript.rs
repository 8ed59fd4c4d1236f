//! What one model call shows, whoever provides the model.

use domain::{Block, ToolResult, ToolSpec};

use crate::structured::OutputSchema;

/// Everything of one model call that does not depend on the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transcript {
    /// The system prompt in blocks, the longest shared first: the phase's own text, then the repository's block.
    pub(crate) system: Vec<String>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) messages: Vec<Message>,
    /// The form that the reply must have, when it is not free text.
    pub(crate) output: Option<OutputSchema>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    User(String),
    /// A reply, verbatim.
    Assistant(Vec<Block>),
    /// The results of the reply's tool calls, in its order: the model's call id and the result.
    ToolResults(Vec<(String, ToolResult)>),
}
