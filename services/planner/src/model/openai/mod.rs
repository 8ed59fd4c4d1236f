//! Dialect of Chat Completions: `OpenAI`, Azure, and compatible servers.

mod calls;
mod reply;

use domain::{ReplyBlock, ToolCall, ToolResult, ToolSpec, ToolStatus};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Map, Value, json};

use super::{
    ClientError,
    dialect::{
        ModelDialect, ModelRequest, SettingProblem, ShownPart, base_address, extra_headers, find_api_key,
        find_auth_token, missing_key_problem, secret_header, wire_id,
    },
    original_calls::{find_originals, render_arguments},
    stream::ReplyCollector,
    tool_name::{ToolNames, wire_name},
};
use crate::config::ModelSettings;
use crate::transcript::{ModelTranscript, TranscriptMessage};
use reply::ChatCollector;

/// Address of `OpenAI`.
pub(super) const BASE_URL: &str = "https://api.openai.com";
const PATH: &str = "/chat/completions";
// Dialect of blocks with reasoning.
const BLOCKS: &str = "openai";
// Hosts that expect Azure's `api-key` header.
const AZURE_HOSTS: [&str; 3] = [
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
];

/// Dialect for Chat Completions.
pub(super) struct OpenAiDialect;

impl ModelDialect for OpenAiDialect {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn check(&self, settings: &ModelSettings) -> Result<(), SettingProblem> {
        let has_key = find_api_key(settings).is_some() || find_auth_token(settings).is_some();
        if settings.thinking.is_some() {
            return Err(("thinking", "is for Anthropic's models; use effort"));
        }
        if settings.api_version.is_some() && settings.base_url.is_none() {
            return Err((
                "base_url",
                "must be set with api_version: the address of the Azure resource",
            ));
        }
        // A private server may need no key.
        if !has_key && settings.base_url.is_none() {
            return Err(missing_key_problem(settings));
        }
        Ok(())
    }

    fn default_address(&self) -> Option<&'static str> {
        Some(BASE_URL)
    }

    fn url(&self, settings: &ModelSettings) -> String {
        let base = base_address(settings, BASE_URL);
        match &settings.api_version {
            _ if base.ends_with(PATH) => base.to_owned(),
            Some(version) => {
                let name = &settings.name;
                format!("{base}/openai/deployments/{name}{PATH}?api-version={version}")
            }
            None => format!("{base}/v1{PATH}"),
        }
    }

    fn headers(&self, settings: &ModelSettings) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        match (find_auth_token(settings), find_api_key(settings)) {
            (None, Some(key)) if is_azure(settings) => {
                headers.insert("api-key", secret_header("", key)?);
            }
            (Some(secret), _) | (None, Some(secret)) => {
                headers.insert(AUTHORIZATION, secret_header("Bearer ", secret)?);
            }
            (None, None) => {}
        }
        extra_headers(settings, &mut headers)?;
        Ok(headers)
    }

    fn body(&self, ask: &ModelRequest<'_>) -> Value {
        let (settings, transcript) = (ask.settings, ask.transcript);
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
        put("model", json!(settings.name));
        put("stream", json!(true));
        // Without it the stream has no token counts, and the reply would have no price.
        put("stream_options", json!({ "include_usage": true }));
        put("messages", Value::Array(build_chat_messages(ask)));
        if !transcript.tools.is_empty() {
            put("tools", transcript.tools.iter().map(build_tool).collect());
        }
        if let Some(effort) = &settings.effort {
            put("reasoning_effort", json!(effort));
        }
        if let Some(output) = &transcript.output {
            let schema =
                json!({ "name": output.name, "schema": output.for_provider(), "strict": output.is_strict() });
            put(
                "response_format",
                json!({ "type": "json_schema", "json_schema": schema }),
            );
        }
        // `OpenAI` refuses `max_tokens` for its newer models; compatible servers know only `max_tokens` and
        // no cache key.
        if is_own_service(settings) {
            put("max_completion_tokens", json!(settings.max_output_tokens));
            put("prompt_cache_key", json!(cache_key(transcript)));
        } else {
            put("max_tokens", json!(settings.max_output_tokens));
        }
        Value::Object(body)
    }

    fn collector(&self, tools: ToolNames) -> Box<dyn ReplyCollector> {
        Box::new(ChatCollector::new(tools))
    }
}

/// Returns true if `OpenAI` or Azure answers, not a compatible server.
pub(super) fn is_own_service(settings: &ModelSettings) -> bool {
    settings.base_url.is_none() || is_azure(settings)
}

fn is_azure(settings: &ModelSettings) -> bool {
    let host = || {
        let url = settings.base_url.as_deref()?.parse::<reqwest::Url>().ok()?;
        url.host_str().map(str::to_owned)
    };
    settings.api_version.is_some()
        || host().is_some_and(|host| AZURE_HOSTS.iter().any(|azure| host.ends_with(azure)))
}

/// Returns the cache key. Calls with the same tools and system prompt share a cache: those of one phase in
/// one repository.
pub(super) fn cache_key(transcript: &ModelTranscript) -> String {
    let tools = transcript.tools.iter().map(|tool| &tool.name);
    // FNV-1a: stable over releases and machines.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for text in transcript.system.iter().chain(tools) {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("journeyman-{hash:016x}")
}

/// Returns the system prompt as one text; `None` if it is empty.
pub(super) fn join_system(transcript: &ModelTranscript) -> Option<String> {
    let system = transcript.system.iter().map(String::as_str);
    let parts: Vec<&str> = system.filter(|text| !text.trim().is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn build_tool(tool: &ToolSpec) -> Value {
    let function = Value::from_iter([
        ("name", json!(tool.name)),
        ("description", json!(tool.description)),
        ("parameters", tool.input_schema.clone()),
    ]);
    Value::from_iter([("type", json!("function")), ("function", function)])
}

fn build_chat_messages(ask: &ModelRequest<'_>) -> Vec<Value> {
    let mut wire = Vec::new();
    if let Some(system) = join_system(ask.transcript) {
        wire.push(json!({ "role": "system", "content": system }));
    }
    let mut replies = 0;
    for message in &ask.transcript.messages {
        match message {
            TranscriptMessage::User(text) => wire.push(json!({ "role": "user", "content": text })),
            TranscriptMessage::Parts(parts) => {
                let content = build_parts(&ask.shown_parts(parts));
                wire.push(Value::from_iter([("role", json!("user")), ("content", content)]));
            }
            TranscriptMessage::Assistant(blocks) => {
                replies += 1;
                wire.push(assistant_message(ask, blocks, replies));
            }
            // The place of a result equals the place of its call, which gives its id.
            TranscriptMessage::ToolResults(results) => {
                let results = results.iter().enumerate();
                wire.extend(
                    results.map(|(place, (_, result))| tool_result_message(&wire_id(replies, place), result)),
                );
            }
        }
    }
    wire
}

/// Builds the content of a message with images. Without any it is one text, which is all that some servers accept.
fn build_parts(parts: &[ShownPart<'_>]) -> Value {
    let texts = parts.iter().map(|part| match part {
        ShownPart::Text(text) => Some(&**text),
        ShownPart::Image { .. } => None,
    });
    if let Some(texts) = texts.collect::<Option<Vec<&str>>>() {
        return Value::String(texts.join("\n\n"));
    }
    let parts = parts.iter().map(|part| match part {
        ShownPart::Text(text) => json!({ "type": "text", "text": text }),
        ShownPart::Image { media_type, data } => {
            let url = format!("data:{media_type};base64,{data}");
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    });
    Value::Array(parts.collect())
}

fn assistant_message(ask: &ModelRequest<'_>, blocks: &[ReplyBlock], reply: usize) -> Value {
    let originals = find_originals(ask, blocks);
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    let mut message = json!({ "role": "assistant" });
    for block in blocks {
        match block {
            ReplyBlock::Text { text } => texts.push(text.as_str()),
            ReplyBlock::ToolCall(call) => {
                let original = originals.get(calls.len()).unwrap_or(&Value::Null);
                calls.push(build_tool_call(call, &wire_id(reply, calls.len()), original));
            }
            ReplyBlock::Opaque {
                dialect,
                provider,
                model,
                value,
            } if ask.owns(dialect, BLOCKS, provider, model) => {
                for (field, reasoning) in value.as_object().into_iter().flatten() {
                    message[field.as_str()] = reasoning.clone();
                }
            }
            ReplyBlock::Opaque { .. } => {}
        }
    }
    let text = texts.join("\n\n");
    message["content"] = if !text.is_empty() {
        Value::String(text)
    } else if !calls.is_empty() {
        Value::Null
    } else {
        // Some servers refuse an empty message: a reply may have reasoning alone, which only its own model gets back.
        json!("(no words)")
    };
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

fn build_tool_call(call: &ToolCall, id: &str, original: &Value) -> Value {
    let arguments = render_arguments(call, original);
    let function = json!({ "name": wire_name(&call.name), "arguments": arguments });
    let mut wire = json!({ "id": id, "type": "function", "function": function });
    if original["extra_content"].is_object() {
        wire["extra_content"] = original["extra_content"].clone();
    }
    wire
}

/// Returns the text of a result, with its status where it is not a success.
pub(super) fn render_result(result: &ToolResult) -> String {
    match result.status {
        ToolStatus::Ok => result.content.clone(),
        ToolStatus::Error => format!("Error: {}", result.content),
        ToolStatus::Interrupted => format!("Interrupted: {}", result.content),
    }
}

fn tool_result_message(id: &str, result: &ToolResult) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": render_result(result) })
}
