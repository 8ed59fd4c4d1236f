//! Content of one model call, independent of the provider.

use domain::{ReplyBlock, ToolResult, ToolSpec};
use serde::Serialize;

use crate::structured_reply::OutputSchema;

/// Content of one model call, independent of the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelTranscript {
    /// System prompt in blocks, the most widely shared first: the phase's own text, then the repository's
    /// block.
    pub(crate) system: Vec<String>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) messages: Vec<TranscriptMessage>,
    /// Form of the reply, unless it is free text.
    pub(crate) output: Option<OutputSchema>,
}

impl ModelTranscript {
    /// Returns the approximate length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let system = self.system.iter().map(String::len);
        let tools = self.tools.iter().map(serialized_length);
        let messages = self.messages.iter().map(|message| match message {
            TranscriptMessage::User(words) => words.len(),
            TranscriptMessage::Assistant(blocks) => serialized_length(blocks),
            TranscriptMessage::ToolResults(results) => {
                results.iter().map(|(_, result)| result.content.len()).sum()
            }
        });
        system.chain(tools).chain(messages).sum()
    }
}

fn serialized_length(part: &impl Serialize) -> usize {
    serde_json::to_string(part).map_or(0, |text| text.len())
}

/// Message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TranscriptMessage {
    User(String),
    /// Reply of the model, verbatim.
    Assistant(Vec<ReplyBlock>),
    /// Results of the reply's tool calls, in order: the model's call id and the result.
    ToolResults(Vec<(String, ToolResult)>),
}
