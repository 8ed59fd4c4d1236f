//! What Anthropic's models reply, event by event.

use domain::{Block, Reply, ReplyStop, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::BLOCKS;
use crate::model::{
    failure::{Failure, Said},
    stream::{Collect, Next, arguments},
};

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
    #[serde(default)]
    message: String,
}

/// Both events carry cumulative counts; the later one wins where it has any.
#[derive(Default, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<WireWrites>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireWrites {
    #[serde(default)]
    ephemeral_1h_input_tokens: u64,
}

impl WireUsage {
    fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_creation = later.cache_creation.or(self.cache_creation);
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
            cache_write_1h_tokens: self
                .cache_creation
                .map_or(0, |writes| writes.ephemeral_1h_input_tokens.min(write)),
        }
    }
}

/// A reply in the making.
#[derive(Default)]
pub(in crate::model) struct Collector {
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
            Event::Error { error } => return Err(in_stream(&error.class, &error.message)),
            Event::ContentBlockStop {} | Event::Other => {}
        }
        Ok(Next::More)
    }

    fn finish(self: Box<Self>) -> Result<Reply, Failure> {
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
            provider: String::new(),
            cost_micros: None,
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
        Some(_) | None => {
            let mut value = value;
            if !streamed.is_empty() {
                value["input"] = arguments(streamed);
            }
            Some(Block::Opaque {
                dialect: BLOCKS.to_owned(),
                provider: String::new(),
                model: String::new(),
                value,
            })
        }
    }
}

/// An error in the middle of a stream; only what the request itself causes is final.
fn in_stream(class: &str, message: &str) -> Failure {
    let said = Said::new(class, message);
    match said.kind() {
        Some(kind) => kind.failure(said.words(None)),
        None => Failure::transient("reported an error in the middle of its reply"),
    }
}
