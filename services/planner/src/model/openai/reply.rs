//! What Chat Completions reply, chunk by chunk.

use domain::{Block, Reply, ReplyStop, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::BLOCKS;
use crate::model::{
    failure::{Failure, Said},
    stream::{Collect, Next, arguments},
};

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: String,
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
    /// Thinking, under the name that some servers give it.
    reasoning_content: Option<String>,
    /// Thinking, under the name that other servers give it.
    reasoning: Option<String>,
    /// Thinking in parts, with what its provider needs to read it again.
    reasoning_details: Option<Vec<Map<String, Value>>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: usize,
    id: Option<String>,
    #[serde(default)]
    function: FunctionDelta,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Default, Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

/// A reply in the making.
#[derive(Default)]
pub(super) struct Collector {
    model: String,
    text: String,
    reasoning: Reasoning,
    refused: bool,
    calls: Vec<PartialCall>,
    stop: Option<String>,
    usage: Usage,
    started: bool,
}

#[derive(Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

/// More calls than this in one reply are garbage.
const MOST_CALLS: usize = 128;

impl Collect for Collector {
    fn take(&mut self, data: &str) -> Result<Next, Failure> {
        if data.trim() == "[DONE]" {
            return Ok(Next::Done);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| Failure::Garbage("an unknown event"))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(in_stream(&error));
        }
        self.started = true;
        if !chunk.model.is_empty() {
            self.model = chunk.model;
        }
        if let Some(usage) = chunk.usage {
            let details = usage.prompt_tokens_details.unwrap_or_default();
            self.usage = Usage {
                input_tokens: usage.prompt_tokens,
                output_tokens: usage.completion_tokens,
                cache_read_tokens: details.cached_tokens.unwrap_or(0),
                cache_write_tokens: details.cache_write_tokens.unwrap_or(0),
                cache_write_1h_tokens: 0,
            };
        }
        for choice in chunk.choices.into_iter().take(1) {
            self.stop = choice.finish_reason.or(self.stop.take());
            self.delta(choice.delta)?;
        }
        Ok(Next::More)
    }

    fn finish(self: Box<Self>) -> Result<Reply, Failure> {
        if !self.started {
            return Err(Failure::Garbage("no message"));
        }
        let stop = match self.stop.as_deref() {
            Some("content_filter") => ReplyStop::Refusal,
            Some("stop" | "tool_calls" | "function_call") if self.refused => ReplyStop::Refusal,
            // Some servers say `stop` although they ask for tools.
            Some("stop" | "tool_calls" | "function_call") if !self.calls.is_empty() => ReplyStop::ToolUse,
            Some("stop" | "tool_calls" | "function_call") => ReplyStop::EndTurn,
            Some("length") => ReplyStop::MaxTokens,
            Some("error") => return Err(Failure::transient("reported an error in the middle of its reply")),
            Some(_) => return Err(Failure::Garbage("an unknown finish reason")),
            None => return Err(Failure::transient("cut its reply")),
        };
        let mut blocks = Vec::new();
        blocks.extend(self.reasoning.block());
        if !self.text.trim().is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        blocks.extend(self.calls.into_iter().map(|call| {
            Block::ToolCall(ToolCall {
                // Some servers send no id, but want one back with the result.
                id: if call.id.is_empty() {
                    format!("call_{}", uuid::Uuid::new_v4().simple())
                } else {
                    call.id
                },
                name: call.name,
                input: arguments(call.arguments),
            })
        }));
        Ok(Reply {
            blocks,
            stop,
            usage: self.usage,
            model: self.model,
            provider: String::new(),
            cost_micros: None,
        })
    }
}

impl Collector {
    fn delta(&mut self, mut delta: Delta) -> Result<(), Failure> {
        self.text.push_str(delta.content.as_deref().unwrap_or_default());
        self.reasoning.take(&delta)?;
        self.refused |= delta.refusal.is_some_and(|refusal| !refusal.is_empty());
        for call in delta.tool_calls.take().unwrap_or_default() {
            if call.index >= MOST_CALLS {
                return Err(Failure::Garbage("too many tool calls"));
            }
            if self.calls.len() <= call.index {
                self.calls.resize_with(call.index + 1, PartialCall::default);
            }
            let partial = &mut self.calls[call.index];
            if let Some(id) = call.id.filter(|id| !id.is_empty()) {
                partial.id = id;
            }
            partial
                .name
                .push_str(call.function.name.as_deref().unwrap_or_default());
            partial
                .arguments
                .push_str(call.function.arguments.as_deref().unwrap_or_default());
        }
        Ok(())
    }
}

/// Thinking, as servers compatible with the provider send it; each field goes back under its own name.
#[derive(Default)]
struct Reasoning {
    reasoning_content: String,
    reasoning: String,
    details: Vec<Map<String, Value>>,
}

/// More parts than this in one reply are garbage.
const MOST_PARTS: usize = 4096;

impl Reasoning {
    fn take(&mut self, delta: &Delta) -> Result<(), Failure> {
        self.reasoning_content
            .push_str(delta.reasoning_content.as_deref().unwrap_or_default());
        self.reasoning
            .push_str(delta.reasoning.as_deref().unwrap_or_default());
        for part in delta.reasoning_details.iter().flatten() {
            let same = |known: &&mut Map<String, Value>| {
                ["index", "type"]
                    .iter()
                    .all(|key| known.get(*key) == part.get(*key))
            };
            match self.details.last_mut().filter(same) {
                Some(known) => join(known, part),
                None => self.details.push(part.clone()),
            }
        }
        if self.details.len() > MOST_PARTS {
            return Err(Failure::Garbage("too much reasoning"));
        }
        Ok(())
    }

    fn block(self) -> Option<Block> {
        let texts = [
            ("reasoning_content", self.reasoning_content),
            ("reasoning", self.reasoning),
        ];
        let mut value: Map<String, Value> = texts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(field, text)| (field.to_owned(), Value::String(text)))
            .collect();
        if !self.details.is_empty() {
            let details = self.details.into_iter().map(Value::Object).collect();
            value.insert("reasoning_details".to_owned(), details);
        }
        (!value.is_empty()).then(|| Block::Opaque {
            dialect: BLOCKS.to_owned(),
            provider: String::new(),
            model: String::new(),
            value: Value::Object(value),
        })
    }
}

/// Texts of a part come in pieces; of everything else the last counts.
fn join(known: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (field, value) in more {
        let grows = matches!(field.as_str(), "text" | "summary" | "data");
        match (known.get_mut(field), value) {
            (Some(Value::String(text)), Value::String(piece)) if grows => text.push_str(piece),
            (_, Value::Null) => {}
            _ => drop(known.insert(field.clone(), value.clone())),
        }
    }
}

/// An error in the middle of a stream; only what the request itself causes is final.
fn in_stream(error: &Value) -> Failure {
    let text = |field: &str| error[field].as_str().unwrap_or_default();
    let class = if error["code"].is_string() {
        text("code")
    } else {
        text("type")
    };
    let said = Said::new(class, text("message"));
    match said.kind() {
        Some(kind) => kind.failure(said.words(None)),
        None => Failure::transient("reported an error in the middle of its reply"),
    }
}
