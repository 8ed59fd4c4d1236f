//! Conversations with models: phases, roles and replies, independent of a provider's wire format.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

/// Purpose of a conversation with the model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The model makes the change in the workspace.
    #[default]
    Work,
    /// The model chooses labels for a new ticket.
    Triage,
    /// The model assesses a ticket before the work begins.
    Intake,
    /// The model plans a large change.
    Plan,
    /// A second model reviews the change.
    Review,
    /// The model answers a question.
    Answer,
    /// The model researches, summarizes, plans or closes a discussion.
    Discuss,
    /// The model reviews a pull request of another author.
    PullRequest,
}

impl RunPhase {
    /// The name in journals, prompts and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Role that selects one of the configured models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// The model that does the work.
    #[default]
    Default,
    /// A small model for short questions.
    Fast,
    /// A model that judges the work of the default one.
    Reviewer,
}

/// One part of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyBlock {
    /// Text for people or for the model itself.
    Text {
        /// The text of the block.
        text: String,
    },
    /// A request of the model to run a tool.
    ToolCall(ToolCall),
    // Thinking belongs to the provider and model that wrote it. The provider may reject its own block when
    // the conversation before it changed.
    /// A block that only its provider understands, such as thinking with its signature. Journeyman sends it
    /// back to that provider verbatim.
    Opaque {
        /// The dialect of the reply: `anthropic`, `openai` …
        dialect: String,
        /// The provider that sent it, by its name in the settings; empty in records of earlier releases.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        provider: String,
        /// The requested model; empty in records of earlier releases.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// The block as received.
        value: Value,
    },
}

/// A request of the model to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id for the call. The result repeats it.
    pub id: String,
    /// Name of the requested tool.
    pub name: String,
    /// The arguments. Arguments that are not JSON arrive as a JSON string, so that the tool can reject them.
    pub input: Value,
}

/// Reason for the end of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStop {
    /// The model completed its turn.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The reply reached its token limit.
    MaxTokens,
    /// The provider or the model refused.
    Refusal,
}

/// Kind of failure of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// The provider is overloaded, unreachable or reports an internal error.
    Unavailable,
    /// The answers of the provider are unreadable.
    Unreadable,
    /// The conversation exceeds the context window of the model.
    ContextTooLong,
    /// The provider rejects the credentials.
    CredentialsRefused,
    /// The provider does not offer the model, or the account has no funds for it.
    NotOffered,
    /// The provider rejects the request itself.
    Refused,
}

/// Token counts of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Part of the tokens read that the provider's cache served.
    pub cache_read_tokens: u64,
    /// Part of the tokens read that the provider wrote to its cache.
    pub cache_write_tokens: u64,
    /// Part of the tokens written to the cache that the provider keeps for an hour instead of five minutes.
    #[serde(default)]
    pub cache_write_1h_tokens: u64,
}

/// One reply of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// Its parts, in order.
    pub blocks: Vec<ReplyBlock>,
    /// Reason for the end of the reply.
    pub stop: ReplyStop,
    /// Token counts of the call.
    pub usage: TokenUsage,
    /// The answering model by the provider's name for it.
    pub model: String,
    /// The answering provider by its name in the settings; empty in records of earlier releases.
    #[serde(default)]
    pub provider: String,
    // An unknown price is not 0, otherwise a budget in money could never be exhausted.
    /// Cost in millionths of a dollar; absent when the price of the model is unknown.
    #[serde(default)]
    pub cost_micros: Option<u64>,
}

impl ModelReply {
    /// Returns the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            ReplyBlock::ToolCall(call) => Some(call),
            ReplyBlock::Text { .. } | ReplyBlock::Opaque { .. } => None,
        })
    }

    /// Returns the text parts, joined by blank lines.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            ReplyBlock::Text { text } => Some(text.as_str()),
            ReplyBlock::ToolCall(_) | ReplyBlock::Opaque { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}
