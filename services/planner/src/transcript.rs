//! What one model call shows, whoever provides the model.

use domain::{Block, ToolResult, ToolSpec};
use serde::Serialize;

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

impl Transcript {
    /// How long it is, about, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let system = self.system.iter().map(String::len);
        let tools = self.tools.iter().map(written);
        let messages = self.messages.iter().map(|message| match message {
            Message::User(words) => words.len(),
            Message::Assistant(blocks) => written(blocks),
            Message::ToolResults(results) => results.iter().map(|(_, result)| result.content.len()).sum(),
        });
        system.chain(tools).chain(messages).sum()
    }
}

fn written(part: &impl Serialize) -> usize {
    serde_json::to_string(part).map_or(0, |text| text.len())
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
