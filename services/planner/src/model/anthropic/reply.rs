//! Replies of the Messages API, event by event, tolerant of what compatible servers send.

use domain::{ModelReply, ReplyBlock, TokenUsage, ToolCall};
use serde_json::{Value, json};

use super::BLOCKS;
use crate::model::{
    end_reason::{EndReasons, ReplyContent},
    failure::{AttemptFailure, ProviderError},
    split_characters::{join_all, join_halves},
    stream::{
        ReplyCollector, StreamProgress, opaque_block, parse_arguments, parse_call_arguments, parse_count,
    },
    tool_name::ToolNames,
};

/// Token counts of a reply. Events carry cumulative counts; a later count replaces an earlier one.
#[derive(Default)]
struct WireUsage {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cache_write_1h: Option<u64>,
}

impl WireUsage {
    fn update(&mut self, later: &Value) {
        // A later event repeats a count or omits it: some servers send zeros for earlier counts.
        let update = |known: &mut Option<u64>, value: &Value| match parse_count(value) {
            Some(0) if known.is_some() => {}
            counted => *known = counted.or(*known),
        };
        update(&mut self.input, &later["input_tokens"]);
        update(&mut self.output, &later["output_tokens"]);
        update(&mut self.cache_read, &later["cache_read_input_tokens"]);
        update(&mut self.cache_write, &later["cache_creation_input_tokens"]);
        update(
            &mut self.cache_write_1h,
            &later["cache_creation"]["ephemeral_1h_input_tokens"],
        );
    }

    /// Returns the sum. The provider counts cached tokens separately; here they are part of the input
    /// tokens.
    fn total(&self) -> TokenUsage {
        let (read, write) = (self.cache_read.unwrap_or(0), self.cache_write.unwrap_or(0));
        TokenUsage {
            input_tokens: self.input.unwrap_or(0) + read + write,
            output_tokens: self.output.unwrap_or(0),
            cache_read_tokens: read,
            cache_write_tokens: write,
            cache_write_1h_tokens: self.cache_write_1h.unwrap_or(0).min(write),
        }
    }
}

/// Block that is still incomplete.
struct PartialBlock {
    index: Option<u64>,
    value: Value,
    streamed: String,
}

/// Reply that is still incomplete.
#[derive(Default)]
pub(in crate::model) struct MessageCollector {
    tools: ToolNames,
    model: String,
    started: bool,
    blocks: Vec<PartialBlock>,
    reasons: EndReasons,
    usage: WireUsage,
}

impl MessageCollector {
    pub(in crate::model) fn new(tools: ToolNames) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }
}

// A reply with more blocks is garbage.
const MOST_BLOCKS: usize = 4096;

impl ReplyCollector for MessageCollector {
    fn take(&mut self, event: &Value) -> Result<StreamProgress, AttemptFailure> {
        match event["type"].as_str() {
            Some("message_start") => self.message(&event["message"]),
            // A server without streaming sends the whole message.
            Some("message") => {
                self.message(event);
                self.reasons.take(event["stop_reason"].as_str());
            }
            Some("content_block_start") => {
                self.begin(parse_count(&event["index"]), event["content_block"].clone())?
            }
            Some("content_block_delta") => self.delta(parse_count(&event["index"]), &event["delta"])?,
            Some("message_delta") => {
                self.reasons.take(event["delta"]["stop_reason"].as_str());
                self.usage.update(&event["usage"]);
            }
            Some("message_stop") => return Ok(StreamProgress::Done),
            Some("error") => return Err(stream_failure(&event["error"])),
            None if event["error"].is_object() => return Err(stream_failure(&event["error"])),
            Some(_) | None => {}
        }
        Ok(StreamProgress::More)
    }

    fn is_whole(&self) -> bool {
        self.reasons.is_given()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, AttemptFailure> {
        if !self.started && self.blocks.is_empty() {
            return Err(AttemptFailure::Garbage("no message"));
        }
        let mut blocks = Vec::new();
        for block in self.blocks {
            blocks.extend(finish_block(block, &self.tools)?);
        }
        let calls = || {
            blocks.iter().filter_map(|block| match block {
                ReplyBlock::ToolCall(call) => Some(call),
                ReplyBlock::Text { .. } | ReplyBlock::Opaque { .. } => None,
            })
        };
        let held = ReplyContent {
            calls: calls().count(),
            broken: calls().filter(|call| !call.input.is_object()).count(),
            text: blocks
                .iter()
                .any(|block| matches!(block, ReplyBlock::Text { .. })),
            refused: false,
        };
        Ok(ModelReply {
            stop: self.reasons.stop(held)?,
            blocks,
            usage: self.usage.total(),
            model: self.model,
            provider: String::new(),
            cost_micros: None,
        })
    }
}

impl MessageCollector {
    fn message(&mut self, message: &Value) {
        self.started = true;
        if let Some(model) = message["model"].as_str() {
            self.model = join_halves(model.to_owned());
        }
        self.usage.update(&message["usage"]);
        for block in message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|block| block.is_object())
        {
            self.blocks.push(PartialBlock {
                index: None,
                value: block.clone(),
                streamed: String::new(),
            });
        }
    }

    fn begin(&mut self, index: Option<u64>, value: Value) -> Result<(), AttemptFailure> {
        if self.blocks.len() == MOST_BLOCKS || !value.is_object() {
            return Err(AttemptFailure::Garbage("a block that cannot be read"));
        }
        // Some servers repeat the start of a block.
        let again = |last: &PartialBlock| {
            last.index == index && last.streamed.is_empty() && last.value == value && value["id"].is_string()
        };
        if self.blocks.last().is_some_and(again) {
            return Ok(());
        }
        self.blocks.push(PartialBlock {
            index,
            value,
            streamed: String::new(),
        });
        Ok(())
    }

    /// Appends to the last block of this number that accepts the delta. Numbers may have gaps, repeat or be
    /// missing.
    fn delta(&mut self, index: Option<u64>, delta: &Value) -> Result<(), AttemptFailure> {
        let kind = delta["type"].as_str().unwrap_or_default();
        let (field, wanted): (&str, &[&str]) = match kind {
            "text_delta" => ("text", &["text"]),
            "input_json_delta" => ("partial_json", &["tool_use", "server_tool_use", "mcp_tool_use"]),
            "thinking_delta" => ("thinking", &["thinking"]),
            "signature_delta" => ("signature", &["thinking"]),
            _ => return Ok(()),
        };
        let Some(more) = delta[field].as_str() else {
            return Ok(());
        };
        let takes = |block: &PartialBlock| wanted.contains(&block.value["type"].as_str().unwrap_or_default());
        let named = |block: &PartialBlock| index.is_none() || block.index == index;
        let place = match self.blocks.iter().rposition(|block| named(block) && takes(block)) {
            Some(place) => place,
            // A missing start is certain for text alone: a call needs a name.
            None if matches!(kind, "text_delta" | "thinking_delta") && !self.blocks.iter().any(named) => {
                self.begin(index, json!({ "type": wanted[0] }))?;
                self.blocks.len() - 1
            }
            None => return Err(AttemptFailure::Garbage("a delta without its block")),
        };
        let block = &mut self.blocks[place];
        match kind {
            "thinking_delta" | "signature_delta" => append_text(&mut block.value, field, more),
            _ => block.streamed.push_str(more),
        }
        Ok(())
    }
}

fn append_text(value: &mut Value, field: &str, more: &str) {
    let before = value[field].as_str().unwrap_or_default();
    let whole = format!("{before}{more}");
    value[field] = Value::String(whole);
}

fn finish_block(block: PartialBlock, tools: &ToolNames) -> Result<Option<ReplyBlock>, AttemptFailure> {
    let PartialBlock {
        mut value, streamed, ..
    } = block;
    let streamed = join_halves(streamed);
    let field = |name: &str| join_halves(value[name].as_str().unwrap_or_default().to_owned());
    Ok(match value["type"].as_str() {
        Some("text") => {
            let text = field("text") + &streamed;
            (!text.trim().is_empty()).then_some(ReplyBlock::Text { text })
        }
        Some("tool_use") => {
            let name = tools.called(&field("name"))?;
            let input = match &value["input"] {
                _ if !streamed.is_empty() => parse_call_arguments(&name, streamed)?,
                Value::String(text) => parse_call_arguments(&name, join_halves(text.clone()))?,
                Value::Null => json!({}),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    let mut input = value["input"].clone();
                    join_all(&mut input);
                    input
                }
            };
            Some(ReplyBlock::ToolCall(ToolCall {
                id: field("id"),
                name,
                input,
            }))
        }
        Some(_) | None => {
            if !streamed.is_empty() {
                value["input"] = parse_arguments(streamed);
            }
            join_all(&mut value);
            Some(opaque_block(BLOCKS, value))
        }
    })
}

/// Converts an error in the middle of a stream. It is final only if the request itself causes it.
fn stream_failure(error: &Value) -> AttemptFailure {
    let text = |field: &str| error[field].as_str().unwrap_or_default();
    ProviderError::new(text("type"), text("message")).in_stream()
}
