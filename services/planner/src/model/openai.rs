//! The dialect of OpenAI-compatible Chat Completions.

use domain::{Block, Reply, ReplyStop, ToolCall, ToolResult, ToolStatus, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    retry::Failure,
    stream::{Collect, Next, arguments},
};
use crate::config::ModelSettings;
use crate::run::{Message, Transcript};

pub(super) const BASE_URL: &str = "https://api.openai.com";

/// The request body.
pub(super) fn body(settings: &ModelSettings, transcript: &Transcript) -> Value {
    let tools: Vec<Value> = transcript
        .tools
        .iter()
        .map(|tool| {
            let function =
                json!({ "name": tool.name, "description": tool.description, "parameters": tool.input_schema });
            json!({ "type": "function", "function": function })
        })
        .collect();
    let mut messages = vec![json!({ "role": "system", "content": transcript.system })];
    messages.extend(transcript.messages.iter().flat_map(message));
    // The provider itself refuses the old name for its newer models; compatible servers know only the old one.
    let limit = if settings.base_url.is_some() {
        "max_tokens"
    } else {
        "max_completion_tokens"
    };
    json!({
        "model": settings.name,
        limit: settings.max_output_tokens,
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": tools,
        "messages": messages,
    })
}

fn message(message: &Message) -> Vec<Value> {
    match message {
        Message::User(text) => vec![json!({ "role": "user", "content": text })],
        Message::Assistant(blocks) => vec![assistant(blocks)],
        Message::ToolResults(results) => results
            .iter()
            .map(|(id, result)| tool_result(id, result))
            .collect(),
    }
}

fn assistant(blocks: &[Block]) -> Value {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Text { text } => texts.push(text.as_str()),
            Block::ToolCall(call) => calls.push(tool_call(call)),
            Block::Opaque { .. } => {}
        }
    }
    let text = texts.join("\n\n");
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
        if text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    message
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = match &call.input {
        Value::String(text) => text.clone(),
        input => input.to_string(),
    };
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": arguments } })
}

fn tool_result(id: &str, result: &ToolResult) -> Value {
    let content = match result.status {
        ToolStatus::Ok => result.content.clone(),
        ToolStatus::Error => format!("Error: {}", result.content),
        ToolStatus::Interrupted => format!("Interrupted: {}", result.content),
    };
    json!({ "role": "tool", "tool_call_id": id, "content": content })
}

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
}

/// A reply in the making.
#[derive(Default)]
pub(super) struct Collector {
    model: String,
    text: String,
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
        if chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(Failure::transient("reported an error in the middle of its reply"));
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
                cache_write_tokens: 0,
            };
        }
        for choice in chunk.choices.into_iter().take(1) {
            self.stop = choice.finish_reason.or(self.stop.take());
            self.delta(choice.delta)?;
        }
        Ok(Next::More)
    }

    fn finish(self) -> Result<Reply, Failure> {
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
            Some(_) => return Err(Failure::Garbage("an unknown finish reason")),
            None => return Err(Failure::transient("cut its reply")),
        };
        let mut blocks = Vec::new();
        if !self.text.trim().is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        blocks.extend(self.calls.into_iter().enumerate().map(|(index, call)| {
            Block::ToolCall(ToolCall {
                // Some servers send no id, but want one back with the result.
                id: if call.id.is_empty() {
                    format!("call_{index}")
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
        })
    }
}

impl Collector {
    fn delta(&mut self, delta: Delta) -> Result<(), Failure> {
        self.text.push_str(delta.content.as_deref().unwrap_or_default());
        self.refused |= delta.refusal.is_some_and(|refusal| !refusal.is_empty());
        for call in delta.tool_calls.unwrap_or_default() {
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
