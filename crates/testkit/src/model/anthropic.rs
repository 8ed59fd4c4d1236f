//! Anthropic Messages dialect: validation of requests, and rendering of replies as JSON or server-sent
//! events.

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};

use super::reply::{PlayedCall, PlayedReply};
use super::script::PlayedTranscript;

const MAX_CACHE_POINTS: usize = 4;

/// Fields of a request that this module reads.
const KNOWN: [&str; 6] = ["model", "max_tokens", "messages", "system", "tools", "stream"];
/// Fields that are permitted and mostly ignored.
const OPTIONAL: [&str; 9] = [
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "service_tier",
    "tool_choice",
    "output_config",
];

/// Message of a request. It borrows its content: a copy of every prompt would cost more than the rest of an
/// answer.
struct AnthropicMessage<'r> {
    role: &'r str,
    content: &'r Value,
}

struct AnthropicTool<'r> {
    name: &'r str,
    input_schema: &'r Value,
}

#[derive(Default)]
struct MessageContent {
    texts: Vec<String>,
    calls: Vec<String>,
    results: Vec<(String, String)>,
}

/// Parses and validates a request. The error has the wording of the real service.
pub(super) fn read_request(body: &Value) -> Result<PlayedTranscript, String> {
    let fields = body.as_object().ok_or("The request body is not valid JSON")?;
    let is_permitted = |key: &str| KNOWN.contains(&key) || OPTIONAL.contains(&key);
    if let Some(extra) = fields.keys().find(|key| !is_permitted(key)) {
        return Err(format!("{extra}: Extra inputs are not permitted"));
    }
    let model = body["model"].as_str().ok_or("model: Field required")?;
    let max_tokens = body["max_tokens"].as_u64().ok_or("max_tokens: Field required")?;
    if max_tokens == 0 {
        return Err("max_tokens: Input should be greater than or equal to 1".to_owned());
    }
    if fields.get("stream").is_some_and(|stream| !stream.is_boolean()) {
        return Err("stream: Input should be a valid boolean".to_owned());
    }
    if count_cache_points(body) > MAX_CACHE_POINTS {
        return Err(format!(
            "A maximum of {MAX_CACHE_POINTS} blocks with cache_control may be provided"
        ));
    }
    let tools = check_tools(&read_list(fields, "tools", read_tool)?)?;
    check_output(fields)?;
    let messages = fields.contains_key("messages");
    let messages = messages.then(|| read_list(fields, "messages", read_message));
    check_messages(&messages.ok_or("messages: Field required")??, model, tools)
}

/// Reads each entry of a list. An absent list is empty.
fn read_list<'r, T>(
    fields: &'r Map<String, Value>,
    name: &str,
    read: impl Fn(&'r Value) -> Result<T, &'static str>,
) -> Result<Vec<T>, String> {
    let Some(list) = fields.get(name) else {
        return Ok(Vec::new());
    };
    let list = list
        .as_array()
        .ok_or_else(|| format!("{name}: Input should be a valid list"))?;
    list.iter()
        .enumerate()
        .map(|(index, entry)| read(entry).map_err(|problem| format!("{name}.{index}.{problem}")))
        .collect()
}

fn read_tool(tool: &Value) -> Result<AnthropicTool<'_>, &'static str> {
    Ok(AnthropicTool {
        name: tool["name"].as_str().ok_or("name: Field required")?,
        input_schema: tool.get("input_schema").ok_or("input_schema: Field required")?,
    })
}

fn read_message(message: &Value) -> Result<AnthropicMessage<'_>, &'static str> {
    let mut names = message.as_object().into_iter().flat_map(Map::keys);
    if names.any(|name| name != "role" && name != "content") {
        return Err("Extra inputs are not permitted");
    }
    Ok(AnthropicMessage {
        role: message["role"].as_str().ok_or("role: Field required")?,
        content: message.get("content").ok_or("content: Field required")?,
    })
}

/// Counts the fields `cache_control` at any depth.
fn count_cache_points(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count_cache_points).sum(),
        Value::Object(fields) => {
            let own = usize::from(fields.contains_key("cache_control"));
            own + fields.values().map(count_cache_points).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn check_tools(tools: &[AnthropicTool<'_>]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for tool in tools {
        if tool.input_schema["type"] != "object" {
            return Err(format!(
                "tools.{}.input_schema.type: Field required to be object",
                tool.name
            ));
        }
        if names.iter().any(|name| name == tool.name) {
            return Err("tools: Tool names must be unique.".to_owned());
        }
        names.push(tool.name.to_owned());
    }
    Ok(names)
}

fn check_messages(
    messages: &[AnthropicMessage<'_>],
    model: &str,
    tools: Vec<String>,
) -> Result<PlayedTranscript, String> {
    let mut transcript = PlayedTranscript {
        tools,
        ..PlayedTranscript::default()
    };
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let wanted = if index % 2 == 0 { "user" } else { "assistant" };
        if message.role != wanted {
            return Err(format!(
                "messages.{index}: role {:?}, roles must alternate and start with user",
                message.role
            ));
        }
        let content =
            read_content(message.content, model).map_err(|problem| format!("messages.{index}: {problem}"))?;
        check_pairing(index, &open, &content)?;
        if message.role == "user" {
            let results = content.results.into_iter().map(|(_, text)| text);
            transcript.latest = results.chain(content.texts).collect::<Vec<_>>().join("\n");
            if index == 0 {
                transcript.opening.clone_from(&transcript.latest);
            } else {
                transcript.answers.push(transcript.latest.clone());
            }
            open.clear();
        } else {
            transcript.turns += 1;
            open = content.calls;
        }
    }
    match messages.last() {
        None => Err("messages: at least one message is required".to_owned()),
        Some(last) if last.role != "user" => Err("messages: the last one must be the user's".to_owned()),
        Some(_) => Ok(transcript),
    }
}

fn check_pairing(index: usize, open: &[String], content: &MessageContent) -> Result<(), String> {
    let answered: Vec<&String> = content.results.iter().map(|(id, _)| id).collect();
    if let Some(id) = open.iter().find(|id| !answered.contains(id)) {
        return Err(format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
        ));
    }
    if let Some(id) = answered.iter().find(|id| !open.contains(id)) {
        return Err(format!(
            "messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
        ));
    }
    if answered.len() != open.len() {
        return Err(format!(
            "messages.{index}: each tool_use must have a single result"
        ));
    }
    Ok(())
}

fn read_content(content: &Value, model: &str) -> Result<MessageContent, String> {
    match content {
        Value::String(text) if text.trim().is_empty() => Err("text content must be non-empty".to_owned()),
        Value::String(text) => Ok(MessageContent {
            texts: vec![text.clone()],
            ..MessageContent::default()
        }),
        Value::Array(blocks) if blocks.is_empty() => Err("content must be non-empty".to_owned()),
        Value::Array(blocks) => {
            let mut read = MessageContent::default();
            for block in blocks {
                read_block(block, model, &mut read)?;
            }
            Ok(read)
        }
        _ => Err("content must be a text or a list of blocks".to_owned()),
    }
}

fn read_block(block: &Value, model: &str, read: &mut MessageContent) -> Result<(), String> {
    match block["type"].as_str().unwrap_or_default() {
        "text" => {
            let text = block["text"].as_str().filter(|text| !text.trim().is_empty());
            read.texts
                .push(text.ok_or("text content blocks must be non-empty")?.to_owned());
        }
        "tool_use" => {
            let id = block["id"]
                .as_str()
                .ok_or("tool_use.id: Field required")?
                .to_owned();
            check_id(&id)?;
            if !block["input"].is_object() || !block["name"].is_string() {
                return Err("tool_use: name and input (an object) are required".to_owned());
            }
            if read.calls.contains(&id) {
                return Err("`tool_use` ids must be unique".to_owned());
            }
            read.calls.push(id);
        }
        "tool_result" => {
            if !read.texts.is_empty() {
                return Err("tool_result blocks must come before text blocks".to_owned());
            }
            let id = block["tool_use_id"]
                .as_str()
                .ok_or("tool_result.tool_use_id: Field required")?;
            read.results.push((id.to_owned(), result_text(&block["content"])));
        }
        "thinking" => check_thinking(block, model)?,
        "image" => {
            let source = &block["source"];
            if source["type"] != "base64" {
                return Err("image.source.type: Input should be 'base64'".to_owned());
            }
            let media_type = source["media_type"].as_str().unwrap_or_default();
            read.texts.push(super::dialect::describe_image(
                media_type,
                source["data"].as_str(),
            )?);
        }
        "document" | "redacted_thinking" => {}
        other => return Err(format!("unknown block type {other:?}")),
    }
    Ok(())
}

fn check_id(id: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.is_empty() || !id.chars().all(legal) {
        return Err("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'".to_owned());
    }
    Ok(())
}

/// Checks that a thinking block is unchanged and returns to the model that produced it.
fn check_thinking(block: &Value, model: &str) -> Result<(), String> {
    let text = block["thinking"]
        .as_str()
        .ok_or("thinking.thinking: Field required")?;
    if block["signature"] == sign_thinking(text, model) {
        Ok(())
    } else {
        Err("Invalid `signature` in `thinking` block".to_owned())
    }
}

/// Returns the signature of a model's thinking.
fn sign_thinking(text: &str, model: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{model}\n{text}").as_bytes());
    HEXLOWER.encode(digest.as_ref())
}

/// Validates the schema of a structured reply: closed objects without limits.
fn check_output(fields: &Map<String, Value>) -> Result<(), String> {
    let format = fields
        .get("output_config")
        .map_or(&Value::Null, |config| &config["format"]);
    if format.is_null() {
        return Ok(());
    }
    if format["type"] != "json_schema" {
        return Err("output_config.format.type: Input should be 'json_schema'".to_owned());
    }
    super::dialect::check_schema(&format["schema"], false)
        .map_err(|problem| format!("output_config.format.schema: {problem}"))
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Renders an error body.
pub(super) fn render_error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stand_in"})
}

/// Renders the reply as one JSON body.
pub(super) fn render_reply(reply: &PlayedReply) -> Value {
    let mut content = Vec::new();
    if let Some(text) = &reply.thinking {
        content.push(
            json!({"type": "thinking", "thinking": text, "signature": sign_thinking(text, &reply.model)}),
        );
    }
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    content.extend(
        reply
            .calls
            .iter()
            .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input})),
    );
    json!({
        "id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "content": content,
        "stop_reason": stop_reason(reply), "stop_sequence": null, "usage": render_usage(reply, reply.output_tokens),
    })
}

/// Renders the reply as server-sent events.
pub(super) fn stream_reply(reply: &PlayedReply) -> String {
    let lines = reply_events(reply).into_iter().map(|event| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap_or_default()
        )
    });
    lines.collect()
}

/// Returns the events of a streamed reply.
pub(super) fn reply_events(reply: &PlayedReply) -> Vec<Value> {
    let start = json!({"type": "message_start", "message": {
        "id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": render_usage(reply, 1),
    }});
    let mut events = vec![start, json!({"type": "ping"})];
    let mut index = 0;
    if let Some(text) = &reply.thinking {
        let pieces = super::reply::split_pieces(text)
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
        let proof = json!({"type": "signature_delta", "signature": sign_thinking(text, &reply.model)});
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        push_block(&mut events, index, &block, pieces.chain(std::iter::once(proof)));
        index += 1;
    }
    if !reply.text.is_empty() {
        let deltas =
            super::reply::split_pieces(&reply.text).map(|piece| json!({"type": "text_delta", "text": piece}));
        push_block(&mut events, index, &json!({"type": "text", "text": ""}), deltas);
        index += 1;
    }
    for call in &reply.calls {
        push_call(&mut events, index, call);
        index += 1;
    }
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": {"output_tokens": reply.output_tokens},
    }));
    events.push(json!({"type": "message_stop"}));
    events
}

fn push_call(events: &mut Vec<Value>, index: usize, call: &PlayedCall) {
    let input = call.input.to_string();
    let first = std::iter::once(json!({"type": "input_json_delta", "partial_json": ""}));
    let deltas = super::reply::split_pieces(&input)
        .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
    let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
    push_block(events, index, &block, first.chain(deltas));
}

fn push_block(events: &mut Vec<Value>, index: usize, block: &Value, deltas: impl Iterator<Item = Value>) {
    events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
    events.extend(deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
    events.push(json!({"type": "content_block_stop", "index": index}));
}

fn stop_reason(reply: &PlayedReply) -> &'static str {
    if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}

fn render_usage(reply: &PlayedReply, output_tokens: u64) -> Value {
    json!({
        "input_tokens": reply.input.plain, "output_tokens": output_tokens,
        "cache_creation_input_tokens": reply.input.write, "cache_read_input_tokens": reply.input.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": reply.input.write.saturating_sub(reply.input.write_1h),
            "ephemeral_1h_input_tokens": reply.input.write_1h,
        },
    })
}
