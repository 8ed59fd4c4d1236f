//! What a model replies, free of any provider's wire format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One part of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for people or for the model itself.
    Text {
        /// The text.
        text: String,
    },
    /// A wish to run a tool.
    ToolCall(ToolCall),
    /// A block that only its provider understands (thinking with its signature …), replayed verbatim to it.
    Opaque {
        /// The dialect that it came in: `anthropic`, `openai` …
        dialect: String,
        /// The provider that sent it, by its name in the settings; empty in records of former releases.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        provider: String,
        /// The model that was asked for; empty in records of former releases.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// The block as received.
        value: Value,
    },
}

/// A wish of the model to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own id for the call, echoed with the result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments. Arguments that were not JSON arrive as a JSON string, so that the tool can refuse them.
    pub input: Value,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStop {
    /// It is done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The reply was cut at its token limit.
    MaxTokens,
    /// The provider or the model refused.
    Refusal,
}

/// What kind of failure a model call ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// The provider is overloaded, in trouble or away.
    Unavailable,
    /// The provider's answers cannot be read.
    Unreadable,
    /// The conversation does not fit into the model's window.
    ContextTooLong,
    /// The credentials are refused.
    CredentialsRefused,
    /// There is no such model here, or no money for it.
    NotOffered,
    /// The request itself is refused.
    Refused,
}

/// Tokens of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Of the tokens read: served from the provider's cache.
    pub cache_read_tokens: u64,
    /// Of the tokens read: written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Of the tokens written to the cache: those kept for an hour instead of five minutes.
    #[serde(default)]
    pub cache_write_1h_tokens: u64,
}

/// One reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its parts, in order.
    pub blocks: Vec<Block>,
    /// Why it ended.
    pub stop: ReplyStop,
    /// The tokens that it took.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider that answered, by its name in the settings; empty in records of former releases.
    #[serde(default)]
    pub provider: String,
    /// What it cost, in millionths of a dollar; nothing when the model's price is not known.
    #[serde(default)]
    pub cost_micros: Option<u64>,
}

impl Reply {
    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            Block::Text { .. } | Block::Opaque { .. } => None,
        })
    }

    /// The text parts, joined by blank lines.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::ToolCall(_) | Block::Opaque { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}
