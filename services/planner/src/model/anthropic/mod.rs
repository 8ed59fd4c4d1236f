//! Dialect of Anthropic's Messages API.

mod reply;

use domain::{ReplyBlock, ToolResult, ToolSpec, ToolStatus};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};

use super::{
    ClientError,
    dialect::{
        ModelDialect, ModelRequest, SettingProblem, ShownPart, base_address, extra_headers, find_api_key,
        find_auth_token, missing_key_problem, secret_header, wire_id,
    },
    stream::ReplyCollector,
    tool_name::{ToolNames, wire_name},
};
use crate::config::{ModelSettings, ThinkingMode};
use crate::transcript::TranscriptMessage;
pub(super) use reply::MessageCollector;

const BASE_URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
const BETA: &str = "anthropic-beta";
const OAUTH: &str = "oauth-2025-04-20";
// Dialect of blocks that only Anthropic's models understand, at any provider.
const BLOCKS: &str = "anthropic";

/// Anthropic's own API, and compatible servers.
pub(super) struct AnthropicDialect;

impl ModelDialect for AnthropicDialect {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn check(&self, settings: &ModelSettings) -> Result<(), SettingProblem> {
        match (find_api_key(settings), find_auth_token(settings)) {
            (None, None) => return Err(missing_key_problem(settings)),
            (Some(_), Some(_)) => return Err(("auth_token", "goes without api_key")),
            (Some(_), None) | (None, Some(_)) => {}
        }
        check_thinking(settings)
    }

    fn default_address(&self) -> Option<&'static str> {
        Some(BASE_URL)
    }

    fn url(&self, settings: &ModelSettings) -> String {
        format!("{}/v1/messages", base_address(settings, BASE_URL))
    }

    fn headers(&self, settings: &ModelSettings) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        // The settings' headers come before the beta header, which repeats the features that they name.
        extra_headers(settings, &mut headers)?;
        if let Some(token) = find_auth_token(settings) {
            headers.insert(AUTHORIZATION, secret_header("Bearer ", token)?);
            headers.insert(BETA, beta_header_value(settings)?);
        } else if let Some(key) = find_api_key(settings) {
            headers.insert("x-api-key", secret_header("", key)?);
        }
        Ok(headers)
    }

    fn body(&self, ask: &ModelRequest<'_>) -> Value {
        let mut body = build_request(ask, true);
        body.insert("model".to_owned(), json!(ask.settings.name));
        body.insert("stream".to_owned(), json!(true));
        Value::Object(body)
    }

    fn collector(&self, tools: ToolNames) -> Box<dyn ReplyCollector> {
        Box::new(MessageCollector::new(tools))
    }
}

/// Returns the value of the beta header: the features of the settings and OAuth.
fn beta_header_value(settings: &ModelSettings) -> Result<HeaderValue, ClientError> {
    let asked = settings
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(BETA));
    let features = match asked {
        Some((_, features)) => format!("{},{OAUTH}", features.expose_secret()),
        None => OAUTH.to_owned(),
    };
    HeaderValue::from_str(&features).map_err(|_| ClientError::Header(BETA.to_owned()))
}

/// Validates that thinking leaves room for a reply.
pub(super) fn check_thinking(settings: &ModelSettings) -> Result<(), SettingProblem> {
    match settings.thinking {
        Some(ThinkingMode::Budget(tokens)) if tokens >= settings.max_output_tokens => {
            Err(("thinking", "must be less than max_output_tokens"))
        }
        _ => Ok(()),
    }
}

/// Builds the request without model and transport. `keeps_long`: the service caches for an hour if the
/// settings have no `long_cache`.
pub(super) fn build_request(ask: &ModelRequest<'_>, keeps_long: bool) -> Map<String, Value> {
    let (settings, transcript) = (ask.settings, ask.transcript);
    let long = settings.long_cache.unwrap_or(keeps_long);
    let mut tools: Vec<Value> = transcript.tools.iter().map(build_tool).collect();
    let mut system: Vec<Value> = transcript
        .system
        .iter()
        // The API refuses empty text blocks.
        .filter(|text| !text.trim().is_empty())
        .map(|text| json!({ "type": "text", "text": text }))
        .collect();
    let mut messages = build_messages(ask);
    mark_shared(&mut tools, &mut system, long);
    // A request without tools is sent once: nothing would read its cache entry.
    if !tools.is_empty() {
        mark_turns(&mut messages);
    }
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
    put("max_tokens", json!(settings.max_output_tokens));
    if let Some(thinking) = thinking_config(settings, &messages) {
        put("thinking", thinking);
    }
    if let Some(output) = output_settings(ask) {
        put("output_config", output);
    }
    if !system.is_empty() {
        put("system", Value::Array(system));
    }
    if !tools.is_empty() {
        put("tools", Value::Array(tools));
    }
    put("messages", Value::Array(messages));
    body
}

// `json!` serializes its values into new ones; `from_iter` moves them. Schemas are most of a first request.
fn build_tool(tool: &ToolSpec) -> Value {
    Value::from_iter([
        ("name", json!(tool.name)),
        ("description", json!(tool.description)),
        ("input_schema", tool.input_schema.clone()),
    ])
}

/// Marks the part that tickets share: the first block of the system prompt, whose cache entry includes the
/// tools, and the last one.
fn mark_shared(tools: &mut [Value], system: &mut [Value], long: bool) {
    let marker = if long {
        json!({ "type": "ephemeral", "ttl": "1h" })
    } else {
        json!({ "type": "ephemeral" })
    };
    match system {
        [] => {
            if let Some(tool) = tools.last_mut() {
                tool["cache_control"] = marker;
            }
        }
        [only] => only["cache_control"] = marker,
        [first, .., last] => {
            first["cache_control"] = marker.clone();
            last["cache_control"] = marker;
        }
    }
}

/// Marks the end of the conversation and the end of the previous turn. The model may add more blocks
/// between them than the provider's cache lookup goes back.
fn mark_turns(messages: &mut [Value]) {
    let last_reply = messages
        .iter()
        .rposition(|message| message["role"] == "assistant");
    let before = last_reply.and_then(|place| place.checked_sub(1));
    let ends = [before, messages.len().checked_sub(1)];
    for place in ends.into_iter().flatten() {
        if let Some(block) = messages[place]["content"]
            .as_array_mut()
            .and_then(|content| content.last_mut())
        {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}

/// Returns the thinking mode. With a budget, Anthropic requires that an open reply begins with thinking;
/// one of another provider does not.
fn thinking_config(settings: &ModelSettings, messages: &[Value]) -> Option<Value> {
    match settings.thinking? {
        ThinkingMode::Disabled => Some(json!({ "type": "disabled" })),
        ThinkingMode::Adaptive => Some(json!({ "type": "adaptive" })),
        ThinkingMode::Budget(tokens) => {
            let [.., reply, last] = messages else {
                return Some(json!({ "type": "enabled", "budget_tokens": tokens }));
            };
            let is_open = last["content"][0]["type"] == "tool_result";
            let thought = ["thinking", "redacted_thinking"]
                .iter()
                .any(|kind| reply["content"][0]["type"] == *kind);
            (!is_open || thought).then(|| json!({ "type": "enabled", "budget_tokens": tokens }))
        }
    }
}

fn output_settings(ask: &ModelRequest<'_>) -> Option<Value> {
    let mut config = Map::new();
    if let Some(effort) = &ask.settings.effort {
        config.insert("effort".to_owned(), json!(effort));
    }
    if let Some(output) = &ask.transcript.output {
        let format = json!({ "type": "json_schema", "schema": output.for_provider() });
        config.insert("format".to_owned(), format);
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Converts the messages. Roles alternate in the API, so a second message of a role joins the first.
fn build_messages(ask: &ModelRequest<'_>) -> Vec<Value> {
    let (mut wire, mut replies): (Vec<Value>, usize) = (Vec::new(), 0);
    for message in &ask.transcript.messages {
        let (role, mut blocks) = match message {
            TranscriptMessage::User(text) => ("user", vec![json!({ "type": "text", "text": text })]),
            TranscriptMessage::Parts(parts) => {
                ("user", ask.shown_parts(parts).iter().map(build_part).collect())
            }
            TranscriptMessage::Assistant(blocks) => {
                replies += 1;
                ("assistant", assistant_blocks(ask, blocks, replies))
            }
            // The place of a result equals the place of its call, which gives its id.
            TranscriptMessage::ToolResults(results) => {
                let results = results.iter().enumerate();
                let shown =
                    results.map(|(place, (_, result))| tool_result_block(&wire_id(replies, place), result));
                ("user", shown.collect())
            }
        };
        let joined = wire
            .last_mut()
            .filter(|last| last["role"] == role)
            .and_then(|last| last["content"].as_array_mut());
        match joined {
            Some(content) => content.append(&mut blocks),
            None => wire.push(Value::from_iter([
                ("role", json!(role)),
                ("content", Value::Array(blocks)),
            ])),
        }
    }
    wire
}

fn build_part(part: &ShownPart<'_>) -> Value {
    match part {
        ShownPart::Text(text) => json!({ "type": "text", "text": text }),
        ShownPart::Image { media_type, data } => {
            let source = json!({ "type": "base64", "media_type": media_type, "data": data });
            json!({ "type": "image", "source": source })
        }
    }
}

/// Converts a reply. The API refuses a reply without content, and one whose last block is thinking: a reply without
/// its thinking (from another provider) is empty, and one that reached its token limit early has only thinking.
fn assistant_blocks(ask: &ModelRequest<'_>, blocks: &[ReplyBlock], reply: usize) -> Vec<Value> {
    let mut calls = 0;
    let mut wire: Vec<Value> = Vec::new();
    for said in blocks {
        let id = wire_id(reply, calls);
        calls += usize::from(matches!(said, ReplyBlock::ToolCall(_)));
        wire.extend(build_block(ask, said, &id));
    }
    if wire.iter().all(is_thinking) {
        wire.push(json!({ "type": "text", "text": "(no words)" }));
    }
    wire
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn build_block(ask: &ModelRequest<'_>, block: &ReplyBlock, id: &str) -> Option<Value> {
    match block {
        ReplyBlock::Text { text } => {
            (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
        }
        ReplyBlock::ToolCall(call) => {
            let input = if call.input.is_object() {
                call.input.clone()
            } else {
                json!({ "invalid": call.input })
            };
            Some(Value::from_iter([
                ("type", json!("tool_use")),
                ("id", json!(id)),
                ("name", json!(wire_name(&call.name))),
                ("input", input),
            ]))
        }
        ReplyBlock::Opaque {
            dialect,
            provider,
            model,
            value,
        } => ask.owns(dialect, BLOCKS, provider, model).then(|| value.clone()),
    }
}

fn tool_result_block(id: &str, result: &ToolResult) -> Value {
    let content = if result.content.is_empty() {
        "(no output)"
    } else {
        &result.content
    };
    let is_error = result.status != ToolStatus::Ok;
    json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error })
}
