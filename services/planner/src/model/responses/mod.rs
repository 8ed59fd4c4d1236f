//! Dialect of Responses: `OpenAI`, Azure, and compatible servers. Every request holds the whole
//! conversation, so no server keeps it.

mod reply;

use domain::{ReplyBlock, ToolCall, ToolResult, ToolSpec};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::{
    ClientError,
    dialect::{ModelDialect, ModelRequest, SettingProblem, ShownPart, base_address, wire_id},
    openai::{BASE_URL, OpenAiDialect, cache_key, is_own_service, join_system, render_result},
    original_calls::{find_originals, render_arguments},
    stream::ReplyCollector,
    tool_name::{ToolNames, wire_name},
};
use crate::config::ModelSettings;
use crate::transcript::TranscriptMessage;
use reply::ResponseCollector;

const PATH: &str = "/responses";
// Dialect of blocks with reasoning, and of those with the phase of a message.
const BLOCKS: &str = "openai_responses";
// Reasoning that the model can read in the next request, although the provider does not store it.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";
// Families without reasoning, which refuse to encrypt it.
const PLAIN_FAMILIES: &[&str] = &["gpt-3", "gpt-4", "chatgpt-4"];

/// Dialect for Responses.
pub(super) struct ResponsesDialect;

impl ModelDialect for ResponsesDialect {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn check(&self, settings: &ModelSettings) -> Result<(), SettingProblem> {
        OpenAiDialect.check(settings)
    }

    fn default_address(&self) -> Option<&'static str> {
        OpenAiDialect.default_address()
    }

    fn url(&self, settings: &ModelSettings) -> String {
        let base = base_address(settings, BASE_URL);
        match &settings.api_version {
            _ if base.ends_with(PATH) => base.to_owned(),
            // The body names the deployment, unlike with Chat Completions.
            Some(version) => format!("{base}/openai{PATH}?api-version={version}"),
            None => format!("{base}/v1{PATH}"),
        }
    }

    fn headers(&self, settings: &ModelSettings) -> Result<HeaderMap, ClientError> {
        OpenAiDialect.headers(settings)
    }

    fn body(&self, ask: &ModelRequest<'_>) -> Value {
        let (settings, transcript) = (ask.settings, ask.transcript);
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
        put("model", json!(settings.name));
        put("stream", json!(true));
        put("store", json!(false));
        put("max_output_tokens", json!(settings.max_output_tokens));
        if let Some(instructions) = join_system(transcript) {
            put("instructions", json!(instructions));
        }
        put("input", Value::Array(build_input(ask)));
        if !transcript.tools.is_empty() {
            put("tools", transcript.tools.iter().map(build_tool).collect());
            put("parallel_tool_calls", json!(true));
        }
        if ask.keep_thinking && has_reasoning(&settings.name) {
            put("include", json!([ENCRYPTED_REASONING]));
        }
        if let Some(effort) = &settings.effort {
            put("reasoning", json!({ "effort": effort }));
        }
        if let Some(output) = &transcript.output {
            let format = json!({
                "type": "json_schema",
                "name": output.name,
                "schema": output.for_provider(),
                "strict": output.is_strict(),
            });
            put("text", json!({ "format": format }));
        }
        // Compatible servers know no cache key.
        if is_own_service(settings) {
            put("prompt_cache_key", json!(cache_key(transcript)));
        }
        Value::Object(body)
    }

    fn collector(&self, tools: ToolNames) -> Box<dyn ReplyCollector> {
        Box::new(ResponseCollector::new(tools))
    }
}

fn has_reasoning(model: &str) -> bool {
    !PLAIN_FAMILIES.iter().any(|family| model.starts_with(family))
}

/// Without `strict: false` the service closes the schema and requires every field of it.
fn build_tool(tool: &ToolSpec) -> Value {
    Value::from_iter([
        ("type", json!("function")),
        ("name", json!(tool.name)),
        ("description", json!(tool.description)),
        ("parameters", tool.input_schema.clone()),
        ("strict", json!(false)),
    ])
}

fn build_input(ask: &ModelRequest<'_>) -> Vec<Value> {
    let (mut input, mut replies) = (Vec::new(), 0);
    for message in &ask.transcript.messages {
        match message {
            TranscriptMessage::User(text) => input.push(user_message(&[text_part(text)])),
            TranscriptMessage::Parts(parts) => {
                let parts: Vec<Value> = ask.shown_parts(parts).iter().map(build_part).collect();
                input.push(user_message(&parts));
            }
            TranscriptMessage::Assistant(blocks) => {
                replies += 1;
                input.extend(assistant_items(ask, blocks, replies));
            }
            // The place of a result equals the place of its call, which gives its id.
            TranscriptMessage::ToolResults(results) => {
                let results = results.iter().enumerate();
                input.extend(
                    results.map(|(place, (_, result))| call_output(&wire_id(replies, place), result)),
                );
            }
        }
    }
    input
}

fn user_message(parts: &[Value]) -> Value {
    json!({ "type": "message", "role": "user", "content": parts })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn build_part(part: &ShownPart<'_>) -> Value {
    match part {
        ShownPart::Text(text) => text_part(text),
        ShownPart::Image { media_type, data } => {
            let url = format!("data:{media_type};base64,{data}");
            // The service takes `auto` as the default, vLLM refuses an image without the field.
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        }
    }
}

/// Converts a reply into its items. Items have no ids: the service would search its store for them.
fn assistant_items(ask: &ModelRequest<'_>, blocks: &[ReplyBlock], reply: usize) -> Vec<Value> {
    let originals = find_originals(ask, blocks);
    let (mut items, mut calls, mut phase): (Vec<Value>, usize, Option<Value>) = (Vec::new(), 0, None);
    for block in blocks {
        match block {
            ReplyBlock::Text { text } => items.push(assistant_message(text, phase.take())),
            ReplyBlock::ToolCall(call) => {
                let original = originals.get(calls).unwrap_or(&Value::Null);
                items.push(function_call(call, &wire_id(reply, calls), original));
                calls += 1;
            }
            ReplyBlock::Opaque {
                dialect,
                provider,
                model,
                value,
            } if ask.owns(dialect, BLOCKS, provider, model) => match value["type"].as_str() {
                Some("reasoning") => items.push(value.clone()),
                Some(_) | None => phase = value.get("phase").cloned(),
            },
            ReplyBlock::Opaque { .. } => {}
        }
    }
    // The service refuses reasoning without the item that it led to.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    items
}

fn assistant_message(text: &str, phase: Option<Value>) -> Value {
    let part = json!({ "type": "output_text", "text": text });
    let mut message = json!({ "type": "message", "role": "assistant", "content": [part] });
    if let Some(phase) = phase {
        message["phase"] = phase;
    }
    message
}

fn function_call(call: &ToolCall, id: &str, original: &Value) -> Value {
    json!({
        "type": "function_call",
        "call_id": id,
        "name": wire_name(&call.name),
        "arguments": render_arguments(call, original),
    })
}

fn call_output(id: &str, result: &ToolResult) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": render_result(result) })
}
