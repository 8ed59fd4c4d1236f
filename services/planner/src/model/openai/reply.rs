//! Replies of Chat Completions, chunk by chunk, tolerant of what compatible servers send.

use domain::{ModelReply, ReplyBlock, TokenUsage};
use serde_json::{Map, Value};

use super::{BLOCKS, calls::PartialCalls};
use crate::model::{
    end_reason::{EndReasons, ReplyContent},
    failure::{AttemptFailure, ProviderError, is_real_error},
    split_characters::{join_all, join_halves},
    stream::{ReplyCollector, StreamProgress, opaque_block, parse_count},
    tool_name::ToolNames,
};

/// Reply that is still incomplete.
#[derive(Default)]
pub(super) struct ChatCollector {
    model: String,
    text: String,
    reasoning: ReasoningParts,
    refused: bool,
    calls: PartialCalls,
    reasons: EndReasons,
    usage: TokenUsage,
    started: bool,
}

impl ChatCollector {
    pub(super) fn new(tools: ToolNames) -> Self {
        Self {
            calls: PartialCalls::new(tools),
            ..Self::default()
        }
    }
}

impl ReplyCollector for ChatCollector {
    fn take(&mut self, chunk: &Value) -> Result<StreamProgress, AttemptFailure> {
        if is_real_error(&chunk["error"]) {
            return Err(ProviderError::of_event(&chunk["error"]).in_stream());
        }
        if let Some(model) = chunk["model"].as_str().filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        // Several choices are alternatives, so the first one counts. Some servers split one reply among
        // choices with one number.
        let choices = chunk["choices"].as_array();
        self.started |= choices.is_some();
        let is_first = |choice: &&Value| parse_count(&choice["index"]).unwrap_or(0) == 0;
        for choice in choices.into_iter().flatten().filter(is_first) {
            self.reasons.take(choice["finish_reason"].as_str());
            // Kimi counts the tokens of a stream in its last choice.
            self.count(&choice["usage"]);
            if choice["delta"].is_object() {
                self.delta(&choice["delta"])?;
            }
            // A server without streaming sends the whole message. Some servers repeat it in the last event of a stream.
            let message = &choice["message"];
            if self.repeats_text(message) {
                self.take_calls(message)?;
            } else if message.is_object() {
                self.delta(message)?;
            }
        }
        self.count(&chunk["usage"]);
        Ok(StreamProgress::More)
    }

    fn is_whole(&self) -> bool {
        self.reasons.is_given()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, AttemptFailure> {
        if !self.started {
            return Err(AttemptFailure::Garbage("no message"));
        }
        let text = join_halves(self.text);
        let held = ReplyContent {
            calls: self.calls.len(),
            broken: self.calls.broken(),
            text: !text.trim().is_empty(),
            refused: self.refused,
        };
        let stop = self.reasons.stop(held)?;
        let mut blocks = Vec::new();
        blocks.extend(self.reasoning.block());
        if held.text {
            blocks.push(ReplyBlock::Text { text });
        }
        blocks.extend(self.calls.blocks()?);
        Ok(ModelReply {
            blocks,
            stop,
            usage: self.usage,
            model: join_halves(self.model),
            provider: String::new(),
            cost_micros: None,
        })
    }
}

impl ChatCollector {
    fn count(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let details = &usage["prompt_tokens_details"];
        let count = |name: &str| parse_count(&usage[name]).unwrap_or(0);
        let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
        // xAI and Gemini leave the reasoning out of the completion, but not out of the total.
        let beyond_prompt = count("total_tokens").saturating_sub(prompt);
        // Kimi and DeepSeek count cached tokens beside the details.
        let cached = count("cached_tokens").max(count("prompt_cache_hit_tokens"));
        let counted = TokenUsage {
            input_tokens: prompt,
            output_tokens: completion.max(beyond_prompt),
            cache_read_tokens: parse_count(&details["cached_tokens"]).unwrap_or(cached),
            cache_write_tokens: parse_count(&details["cache_write_tokens"]).unwrap_or(0),
            cache_write_1h_tokens: 0,
        };
        // Some servers count in every event, and send nothing in the last one.
        if counted != TokenUsage::default() {
            self.usage = counted;
        }
    }

    fn delta(&mut self, delta: &Value) -> Result<(), AttemptFailure> {
        match &delta["content"] {
            Value::String(text) => self.text.push_str(text),
            // Some servers send the content as a list of typed parts.
            Value::Array(parts) => {
                let is_text = |part: &&Value| part["type"].as_str().is_none_or(|kind| kind == "text");
                let texts = parts
                    .iter()
                    .filter(is_text)
                    .filter_map(|part| part["text"].as_str());
                self.text.extend(texts);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        self.reasoning.take(delta)?;
        self.refused |= delta["refusal"]
            .as_str()
            .is_some_and(|refusal| !refusal.is_empty());
        self.take_calls(delta)
    }

    /// Returns true if a whole message has the text of the events before it.
    fn repeats_text(&self, message: &Value) -> bool {
        !self.text.is_empty() && message["content"].as_str() == Some(self.text.as_str())
    }

    fn take_calls(&mut self, delta: &Value) -> Result<(), AttemptFailure> {
        match &delta["tool_calls"] {
            Value::Array(calls) => calls.iter().try_for_each(|call| self.calls.take(call))?,
            call @ Value::Object(_) => self.calls.take(call)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        // The legacy form before parallel calls.
        if delta["function_call"].is_object() {
            self.calls.take(&delta["function_call"])?;
        }
        Ok(())
    }
}

/// Reasoning as compatible servers send it; each field is sent back under its own name.
#[derive(Default)]
struct ReasoningParts {
    reasoning_content: String,
    reasoning: String,
    details: Vec<Map<String, Value>>,
}

// A reply with more parts is garbage.
const MOST_PARTS: usize = 4096;

impl ReasoningParts {
    fn take(&mut self, delta: &Value) -> Result<(), AttemptFailure> {
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        self.reasoning_content.push_str(text("reasoning_content"));
        self.reasoning.push_str(text("reasoning"));
        let parts = delta["reasoning_details"].as_array();
        for part in parts.into_iter().flatten().filter_map(Value::as_object) {
            let same = |known: &&mut Map<String, Value>| {
                ["index", "type"]
                    .iter()
                    .all(|key| known.get(*key) == part.get(*key))
            };
            match self.details.last_mut().filter(same) {
                Some(known) => join_reasoning_parts(known, part),
                None => self.details.push(part.clone()),
            }
        }
        if self.details.len() > MOST_PARTS {
            return Err(AttemptFailure::Garbage("too much reasoning"));
        }
        Ok(())
    }

    fn block(self) -> Option<ReplyBlock> {
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
        if value.is_empty() {
            return None;
        }
        let mut value = Value::Object(value);
        join_all(&mut value);
        Some(opaque_block(BLOCKS, value))
    }
}

/// Joins a part that arrives in pieces: texts are appended, of other fields the last value counts.
fn join_reasoning_parts(known: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (field, value) in more {
        let grows = matches!(field.as_str(), "text" | "summary" | "data");
        match (known.get_mut(field), value) {
            (Some(Value::String(text)), Value::String(piece)) if grows => text.push_str(piece),
            (_, Value::Null) => {}
            _ => drop(known.insert(field.clone(), value.clone())),
        }
    }
}
