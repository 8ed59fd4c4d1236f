//! The dialect of Anthropic's Messages API.

use domain::{Block, Dialect, Reply, ReplyStop, ToolCall, ToolResult, ToolStatus, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    retry::Failure,
    stream::{Collect, Next, arguments},
};
use crate::config::ModelSettings;
use crate::run::{Message, Transcript};

pub(super) const BASE_URL: &str = "https://api.anthropic.com";
pub(super) const VERSION: &str = "2023-06-01";
const DIALECT: Dialect = Dialect::Anthropic;

/// The request body, with cache breakpoints at the last tool, the system prompt and the last block.
pub(super) fn body(settings: &ModelSettings, transcript: &Transcript) -> Value {
    let mut tools: Vec<Value> = transcript
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema }))
        .collect();
    let mut messages = messages(&transcript.messages);
    let last_block = messages
        .last_mut()
        .and_then(|message| message["content"].as_array_mut()?.last_mut());
    for cached in [tools.last_mut(), last_block].into_iter().flatten() {
        cached["cache_control"] = json!({ "type": "ephemeral" });
    }
    json!({
        "model": settings.name,
        "max_tokens": settings.max_output_tokens,
        "stream": true,
        "system": [{ "type": "text", "text": transcript.system, "cache_control": { "type": "ephemeral" } }],
        "tools": tools,
        "messages": messages,
    })
}

/// Roles alternate: what follows a user message joins it.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut wire: Vec<Value> = Vec::new();
    for message in messages {
        let (role, mut blocks) = match message {
            Message::User(text) => ("user", vec![json!({ "type": "text", "text": text })]),
            Message::Assistant(blocks) => ("assistant", blocks.iter().filter_map(block).collect()),
            Message::ToolResults(results) => (
                "user",
                results
                    .iter()
                    .map(|(id, result)| tool_result(id, result))
                    .collect(),
            ),
        };
        let joined = wire
            .last_mut()
            .filter(|last| last["role"] == role)
            .and_then(|last| last["content"].as_array_mut());
        match joined {
            Some(content) => content.append(&mut blocks),
            None => wire.push(json!({ "role": role, "content": blocks })),
        }
    }
    wire
}

fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text })),
        Block::ToolCall(call) => {
            let input = if call.input.is_object() {
                call.input.clone()
            } else {
                json!({ "invalid": call.input })
            };
            Some(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }))
        }
        Block::Opaque { dialect, value } => (*dialect == DIALECT).then(|| value.clone()),
    }
}

fn tool_result(id: &str, result: &ToolResult) -> Value {
    let content = if result.content.is_empty() {
        "(no output)"
    } else {
        &result.content
    };
    let is_error = result.status != ToolStatus::Ok;
    json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error })
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: Value,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    ContentBlockStop {},
    MessageDelta {
        delta: MessageDelta,
        #[serde(default)]
        usage: WireUsage,
    },
    MessageStop {},
    Error {
        error: WireError,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    model: String,
    #[serde(default)]
    usage: WireUsage,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireError {
    #[serde(rename = "type")]
    class: String,
}

/// Both events carry cumulative counts; the later one wins where it has any.
#[derive(Default, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl WireUsage {
    fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
    }

    /// The provider counts cached tokens beside the others; here they are part of the tokens read.
    fn total(&self) -> Usage {
        let read = self.cache_read_input_tokens.unwrap_or(0);
        let write = self.cache_creation_input_tokens.unwrap_or(0);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0) + read + write,
            output_tokens: self.output_tokens.unwrap_or(0),
            cache_read_tokens: read,
            cache_write_tokens: write,
        }
    }
}

/// A reply in the making.
#[derive(Default)]
pub(super) struct Collector {
    model: String,
    started: bool,
    blocks: Vec<(Value, String)>,
    stop: Option<String>,
    usage: WireUsage,
}

impl Collect for Collector {
    fn take(&mut self, data: &str) -> Result<Next, Failure> {
        let event = serde_json::from_str(data).map_err(|_| Failure::Garbage("an unknown event"))?;
        match event {
            Event::MessageStart { message } => {
                self.started = true;
                self.model = message.model;
                self.usage.update(message.usage);
            }
            Event::ContentBlockStart { index, content_block } => {
                if index != self.blocks.len() {
                    return Err(Failure::Garbage("blocks out of order"));
                }
                self.blocks.push((content_block, String::new()));
            }
            Event::ContentBlockDelta { index, delta } => self.delta(index, delta)?,
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.usage.update(usage);
            }
            Event::MessageStop {} => return Ok(Next::Done),
            Event::Error { error } => return Err(in_stream(&error.class)),
            Event::ContentBlockStop {} | Event::Other => {}
        }
        Ok(Next::More)
    }

    fn finish(self) -> Result<Reply, Failure> {
        if !self.started {
            return Err(Failure::Garbage("no message"));
        }
        let stop = match self.stop.as_deref() {
            Some("end_turn" | "stop_sequence" | "pause_turn") => ReplyStop::EndTurn,
            Some("tool_use") => ReplyStop::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => ReplyStop::MaxTokens,
            Some("refusal") => ReplyStop::Refusal,
            Some(_) => return Err(Failure::Garbage("an unknown stop reason")),
            None => return Err(Failure::transient("cut its reply")),
        };
        let blocks = self
            .blocks
            .into_iter()
            .filter_map(|(value, text)| finished_block(value, text));
        Ok(Reply {
            blocks: blocks.collect(),
            stop,
            usage: self.usage.total(),
            model: self.model,
        })
    }
}

impl Collector {
    fn delta(&mut self, index: usize, delta: Delta) -> Result<(), Failure> {
        let (value, text) = self
            .blocks
            .get_mut(index)
            .ok_or(Failure::Garbage("a delta without its block"))?;
        match delta {
            Delta::Text { text: more } => text.push_str(&more),
            Delta::InputJson { partial_json } => text.push_str(&partial_json),
            Delta::Thinking { thinking } => append(value, "thinking", &thinking),
            Delta::Signature { signature } => append(value, "signature", &signature),
            Delta::Other => {}
        }
        Ok(())
    }
}

fn append(value: &mut Value, field: &str, more: &str) {
    let before = value[field].as_str().unwrap_or_default();
    let whole = format!("{before}{more}");
    value[field] = Value::String(whole);
}

fn finished_block(value: Value, streamed: String) -> Option<Block> {
    let field = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    match value["type"].as_str() {
        Some("text") => {
            let text = field("text") + &streamed;
            (!text.trim().is_empty()).then_some(Block::Text { text })
        }
        Some("tool_use") => {
            let input = if streamed.is_empty() {
                value["input"].clone()
            } else {
                arguments(streamed)
            };
            Some(Block::ToolCall(ToolCall {
                id: field("id"),
                name: field("name"),
                input,
            }))
        }
        Some(_) | None => Some(Block::Opaque {
            dialect: DIALECT,
            value,
        }),
    }
}

/// An error in the middle of a stream; only what the request itself causes is final.
fn in_stream(class: &str) -> Failure {
    match class {
        "invalid_request_error" | "authentication_error" | "permission_error" | "not_found_error" => {
            Failure::Refused(class.to_owned())
        }
        _ => Failure::transient("reported an error in the middle of its reply"),
    }
}
