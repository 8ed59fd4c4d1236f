//! Replies of Responses, event by event, tolerant of what compatible servers send.

use domain::{ModelReply, ReplyBlock, TokenUsage, ToolCall};
use serde_json::{Map, Value, json};

use super::BLOCKS;
use crate::model::{
    end_reason::{EndReasons, ReplyContent},
    failure::{AttemptFailure, ProviderError, is_real_error},
    original_calls::{build_original, originals_block},
    split_characters::{self, join_all, join_halves},
    stream::{ReplyCollector, StreamProgress, opaque_block, parse_call_arguments, parse_count},
    tool_name::ToolNames,
};

// A reply with more items is garbage.
const MOST_ITEMS: usize = 4096;
// Fields of reasoning that the service accepts back. It refuses its own `status`.
const REASONING_FIELDS: [&str; 5] = ["type", "id", "summary", "content", "encrypted_content"];

/// Item of a reply, as far as its events show it.
#[derive(Default)]
struct PartialItem {
    index: Option<u64>,
    value: Value,
    /// Texts of the events, in order. They count where the item itself has none.
    text: String,
    refusal: String,
    arguments: String,
    is_done: bool,
}

impl PartialItem {
    fn new(index: Option<u64>, value: Value) -> Self {
        Self {
            index,
            value,
            ..Self::default()
        }
    }

    fn is(&self, kind: &str) -> bool {
        self.value["type"] == kind
    }

    /// Returns true if the item has this id; an empty id is none.
    fn has_id(&self, id: &str) -> bool {
        !id.is_empty() && self.value["id"] == id
    }

    /// Returns the parts of a message of one type, joined.
    fn parts(&self, kind: &str, field: &str) -> String {
        let parts = self.value["content"].as_array().into_iter().flatten();
        let parts = parts.filter(|part| part["type"] == kind);
        parts.filter_map(|part| part[field].as_str()).collect()
    }

    fn message_text(&self) -> String {
        let whole = match &self.value["content"] {
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                self.parts("output_text", "text") + &self.parts("text", "text")
            }
        };
        let text = if whole.is_empty() {
            self.text.clone()
        } else {
            whole
        };
        join_halves(text)
    }

    fn refusal_text(&self) -> String {
        let whole = self.parts("refusal", "refusal");
        join_halves(if whole.is_empty() {
            self.refusal.clone()
        } else {
            whole
        })
    }

    fn call_arguments(&self) -> String {
        let whole = match &self.value["arguments"] {
            Value::String(text) => text.clone(),
            object @ Value::Object(_) => object.to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
        };
        // Some servers open an item with `{}` before the real arguments.
        let is_placeholder = matches!(whole.trim(), "" | "{}") && !self.arguments.is_empty();
        join_halves(if is_placeholder {
            self.arguments.clone()
        } else {
            whole
        })
    }
}

/// Reply that is still incomplete.
#[derive(Default)]
pub(super) struct ResponseCollector {
    tools: ToolNames,
    model: String,
    started: bool,
    items: Vec<PartialItem>,
    reasons: EndReasons,
    usage: TokenUsage,
}

impl ResponseCollector {
    pub(super) fn new(tools: ToolNames) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }
}

impl ReplyCollector for ResponseCollector {
    fn take(&mut self, event: &Value) -> Result<StreamProgress, AttemptFailure> {
        let index = parse_count(&event["output_index"]);
        let id = event["item_id"].as_str().unwrap_or_default();
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("response.created" | "response.in_progress" | "response.queued") => {
                self.response(&event["response"]);
            }
            Some("response.output_item.added") => self.begin(index, event["item"].clone())?,
            Some("response.output_item.done") => self.complete(index, event["item"].clone())?,
            Some("response.output_text.delta") => {
                let place = self.place(index, id, "message")?;
                self.items[place].text.push_str(text("delta"));
            }
            Some("response.refusal.delta") => {
                let place = self.place(index, id, "message")?;
                self.items[place].refusal.push_str(text("delta"));
            }
            Some("response.function_call_arguments.delta") => {
                let place = self.place(index, id, "function_call")?;
                self.items[place].arguments.push_str(text("delta"));
            }
            Some("response.function_call_arguments.done") => {
                let place = self.place(index, id, "function_call")?;
                if !text("arguments").is_empty() {
                    text("arguments").clone_into(&mut self.items[place].arguments);
                }
            }
            Some("response.completed" | "response.done") => return self.end(&event["response"], "completed"),
            Some("response.incomplete") => return self.end(&event["response"], "incomplete"),
            Some("response.failed") => return self.end(&event["response"], "failed"),
            Some("response.cancelled") => return self.end(&event["response"], "cancelled"),
            Some("error") => return Err(event_failure(event)),
            // A server without streaming sends the whole response.
            _ if event["object"] == "response" || event["output"].is_array() => {
                return self.end(event, "completed");
            }
            _ if is_real_error(&event["error"]) => return Err(event_failure(event)),
            // Further events repeat what these carry, or belong to tools that Journeyman does not request.
            Some(_) | None => {}
        }
        Ok(StreamProgress::More)
    }

    fn is_whole(&self) -> bool {
        self.reasons.is_given()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, AttemptFailure> {
        if !self.started && self.items.is_empty() {
            return Err(AttemptFailure::Garbage("no message"));
        }
        let mut reply = ReplyParts::default();
        for item in &self.items {
            reply.add(item, &self.tools)?;
        }
        let stop = self.reasons.stop(reply.held)?;
        let mut blocks = reply.blocks;
        blocks.extend(originals_block(reply.originals));
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

impl ResponseCollector {
    fn response(&mut self, response: &Value) {
        self.started |= response.is_object();
        if let Some(model) = response["model"].as_str().filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        self.count(&response["usage"]);
    }

    /// Counts the tokens. Those of the reasoning are a part of the output.
    fn count(&mut self, usage: &Value) {
        // Some compatible servers keep the names of Chat Completions.
        let count = |names: [&str; 2]| names.iter().find_map(|name| parse_count(&usage[*name]));
        let details = [&usage["input_tokens_details"], &usage["prompt_tokens_details"]];
        let detail = |name: &str| details.iter().find_map(|details| parse_count(&details[name]));
        let counted = TokenUsage {
            input_tokens: count(["input_tokens", "prompt_tokens"]).unwrap_or(0),
            output_tokens: count(["output_tokens", "completion_tokens"]).unwrap_or(0),
            cache_read_tokens: detail("cached_tokens").unwrap_or(0),
            cache_write_tokens: detail("cache_write_tokens").unwrap_or(0),
            cache_write_1h_tokens: 0,
        };
        if counted != TokenUsage::default() {
            self.usage = counted;
        }
    }

    fn begin(&mut self, index: Option<u64>, value: Value) -> Result<(), AttemptFailure> {
        if !value.is_object() || self.items.len() == MOST_ITEMS {
            return Err(AttemptFailure::Garbage("an item that cannot be read"));
        }
        // Some servers repeat the start of an item.
        let is_again = |known: &PartialItem| known.index == index && known.value == value && !known.is_done;
        if !self.items.last().is_some_and(is_again) {
            self.items.push(PartialItem::new(index, value));
        }
        Ok(())
    }

    /// Takes a whole item, in place of its start.
    fn complete(&mut self, index: Option<u64>, value: Value) -> Result<(), AttemptFailure> {
        if !value.is_object() {
            return Err(AttemptFailure::Garbage("an item that cannot be read"));
        }
        let id = value["id"].as_str().unwrap_or_default();
        let kind = value["type"].as_str().unwrap_or_default();
        let is_open = |item: &PartialItem| !item.is_done && item.is(kind);
        let named = self
            .items
            .iter()
            .rposition(|item| is_open(item) && item.has_id(id));
        let place = named.or_else(|| {
            let is_here = |item: &PartialItem| is_open(item) && (index.is_none() || item.index == index);
            self.items.iter().position(is_here)
        });
        let place = match place {
            Some(place) => place,
            None => {
                // Some servers repeat a whole item.
                if self.items.iter().any(|item| item.is_done && item.value == value) {
                    return Ok(());
                }
                self.begin(index, value.clone())?;
                self.items.len() - 1
            }
        };
        let item = &mut self.items[place];
        item.value = merge_item(std::mem::take(&mut item.value), value);
        item.is_done = true;
        Ok(())
    }

    /// Finds the item of a delta. Ids and numbers may be missing, repeat or differ from those of the item.
    fn place(&mut self, index: Option<u64>, id: &str, kind: &str) -> Result<usize, AttemptFailure> {
        let last = |is_it: &dyn Fn(&PartialItem) -> bool| self.items.iter().rposition(is_it);
        let place = last(&|item| item.is(kind) && item.has_id(id))
            .or_else(|| last(&|item| item.is(kind) && index.is_some() && item.index == index))
            .or_else(|| last(&|item| item.is(kind) && !item.is_done && index.is_none()));
        match place {
            Some(place) => Ok(place),
            None => {
                self.begin(index, json!({ "type": kind, "id": id }))?;
                Ok(self.items.len() - 1)
            }
        }
    }

    /// Handles the last event.
    fn end(&mut self, response: &Value, usual: &str) -> Result<StreamProgress, AttemptFailure> {
        self.response(response);
        let status = response["status"].as_str().unwrap_or(usual);
        if is_real_error(&response["error"]) {
            return Err(ProviderError::of_event(&response["error"]).in_stream());
        }
        if matches!(status, "failed" | "cancelled") {
            return Err(AttemptFailure::transient("gave up its reply without a reason"));
        }
        let output = response["output"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        // The last event repeats all items, except with servers that leave them out of it. Items that their
        // own events completed are certain.
        let is_certain = !self.items.is_empty() && self.items.iter().all(|item| item.is_done);
        if !is_certain && !output.is_empty() && output.len() >= self.items.len() {
            self.items.clear();
            for item in output {
                self.complete(None, item.clone())?;
            }
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        self.reasons.take(Some(match status {
            "incomplete" => reason.unwrap_or("incomplete"),
            // `in_progress` in the last event is a mistake of the server.
            "in_progress" | "queued" => usual,
            status => status,
        }));
        Ok(StreamProgress::Done)
    }
}

/// Returns the whole item with the fields of its start that it lacks.
fn merge_item(start: Value, whole: Value) -> Value {
    let (Value::Object(mut fields), Value::Object(later)) = (start, whole.clone()) else {
        return whole;
    };
    for (key, value) in later {
        if !value.is_null() || !fields.contains_key(&key) {
            fields.insert(key, value);
        }
    }
    Value::Object(fields)
}

/// Parts of a complete reply.
#[derive(Default)]
struct ReplyParts {
    blocks: Vec<ReplyBlock>,
    originals: Vec<Value>,
    held: ReplyContent,
}

impl ReplyParts {
    fn add(&mut self, item: &PartialItem, tools: &ToolNames) -> Result<(), AttemptFailure> {
        match item.value["type"].as_str() {
            Some("message") => {
                self.add_message(item);
                Ok(())
            }
            Some("function_call") => self.add_call(item, tools),
            Some("reasoning") => {
                self.blocks.extend(reasoning_block(&item.value));
                Ok(())
            }
            // Items of tools that Journeyman does not request.
            Some(_) | None => Ok(()),
        }
    }

    fn add_message(&mut self, item: &PartialItem) {
        let refusal = item.refusal_text();
        self.held.refused |= !refusal.is_empty();
        let text = item.message_text() + &refusal;
        if text.trim().is_empty() {
            return;
        }
        if let Some(phase) = item.value["phase"].as_str() {
            let phase = join_halves(phase.to_owned());
            self.blocks
                .push(opaque_block(BLOCKS, json!({ "type": "message", "phase": phase })));
        }
        self.held.text = true;
        self.blocks.push(ReplyBlock::Text { text });
    }

    fn add_call(&mut self, item: &PartialItem, tools: &ToolNames) -> Result<(), AttemptFailure> {
        let field = |name: &str| join_halves(item.value[name].as_str().unwrap_or_default().to_owned());
        let name = tools.called(&field("name"))?;
        let text = item.call_arguments();
        let is_whole = text.trim().is_empty() || split_characters::read_json(&text).is_ok();
        self.held.calls += 1;
        self.held.broken += usize::from(!is_whole);
        let given = [field("call_id"), field("id")]
            .into_iter()
            .find(|id| !id.is_empty());
        let id = given.unwrap_or_else(|| format!("call_{}", self.held.calls - 1));
        let input = parse_call_arguments(&name, text.clone())?;
        self.originals
            .push(build_original(&id, text, &input, Value::Null));
        self.blocks
            .push(ReplyBlock::ToolCall(ToolCall { id, name, input }));
        Ok(())
    }
}

/// Returns the block of a reasoning item; `None` for one that the provider cannot read in the next request,
/// because it is neither encrypted nor open.
fn reasoning_block(item: &Value) -> Option<ReplyBlock> {
    let is_kept =
        |(field, value): &(&String, &Value)| REASONING_FIELDS.contains(&field.as_str()) && !value.is_null();
    let fields = item.as_object()?.iter().filter(is_kept);
    let mut kept: Map<String, Value> = fields
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    let is_encrypted = kept
        .get("encrypted_content")
        .and_then(Value::as_str)
        .is_some_and(|content| !content.is_empty());
    let is_open = kept
        .get("content")
        .and_then(Value::as_array)
        .is_some_and(|content| !content.is_empty());
    if !is_encrypted && !is_open {
        return None;
    }
    // Required by the service, even without a summary.
    kept.entry("summary").or_insert_with(|| json!([]));
    let mut value = Value::Object(kept);
    join_all(&mut value);
    Some(opaque_block(BLOCKS, value))
}

/// Converts an error event. Its fields are in an object of their own, or in the event itself.
fn event_failure(event: &Value) -> AttemptFailure {
    if is_real_error(&event["error"]) {
        return ProviderError::of_event(&event["error"]).in_stream();
    }
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    ProviderError::new(text("code"), text("message")).in_stream()
}
