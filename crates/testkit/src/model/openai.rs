//! `OpenAI` Chat Completions dialect: validation of requests, and rendering of replies as JSON or server-sent
//! events.

use serde_json::{Value, json};

use super::reply::{PlayedReply, split_pieces};
use super::script::{PlayedTranscript, TranscriptBuilder};

const KNOWN: [&str; 22] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "user",
    "metadata",
    "reasoning_effort",
    "response_format",
    "n",
    "store",
    "service_tier",
    "prompt_cache_key",
    "safety_identifier",
];

/// Parses and validates a request. The error has the wording of the real service.
pub(super) fn read_request(body: &Value) -> Result<PlayedTranscript, String> {
    let fields = body
        .as_object()
        .ok_or("We could not parse the JSON body of your request.")?;
    if let Some(unknown) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("Unrecognized request argument supplied: {unknown}"));
    }
    body["model"]
        .as_str()
        .ok_or("you must provide a model parameter")?;
    let tools = read_tools(&body["tools"])?;
    check_output(&body["response_format"])?;
    let messages = body["messages"].as_array().filter(|list| !list.is_empty());
    let mut reader = TranscriptReader {
        transcript: TranscriptBuilder::new(tools),
        open: Vec::new(),
    };
    for (index, message) in messages
        .ok_or("'messages' must be a non-empty array")?
        .iter()
        .enumerate()
    {
        reader
            .message(message)
            .map_err(|problem| format!("messages.[{index}]: {problem}"))?;
    }
    reader.end()
}

fn read_tools(tools: &Value) -> Result<Vec<String>, String> {
    let Some(list) = tools.as_array() else {
        return Ok(Vec::new());
    };
    list.iter()
        .map(|tool| {
            let function = &tool["function"];
            let named = function["name"].as_str().filter(|_| tool["type"] == "function");
            let name = named.ok_or("Missing required parameter: 'tools[].function.name'")?;
            if function["parameters"]["type"] != "object" {
                return Err(format!(
                    "Invalid schema for function '{name}': schema must be of type object"
                ));
            }
            Ok(name.to_owned())
        })
        .collect()
}

fn check_output(format: &Value) -> Result<(), String> {
    if format.is_null() {
        return Ok(());
    }
    let wanted = &format["json_schema"];
    if format["type"] != "json_schema" || !wanted["name"].is_string() {
        return Err("Invalid value for 'response_format'".to_owned());
    }
    let is_strict = wanted["strict"] == true;
    super::dialect::check_schema(&wanted["schema"], is_strict)
        .map_err(|problem| format!("Invalid schema for response_format: {problem}"))
}

struct TranscriptReader {
    transcript: TranscriptBuilder,
    open: Vec<String>,
}

impl TranscriptReader {
    fn message(&mut self, message: &Value) -> Result<(), String> {
        let role = message["role"]
            .as_str()
            .ok_or("Missing required parameter: 'role'")?;
        if role != "tool" && !self.open.is_empty() {
            return Err(format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id': {}",
                self.open.join(", ")
            ));
        }
        match role {
            "system" | "developer" => text_of(&message["content"]).map(drop),
            "user" => {
                self.transcript.add_user_text(&text_of(&message["content"])?);
                Ok(())
            }
            "assistant" => self.assistant(message),
            "tool" => {
                let id = message["tool_call_id"]
                    .as_str()
                    .ok_or("Missing required parameter: 'tool_call_id'")?;
                let position = self.open.iter().position(|open| open == id);
                let position = position.ok_or_else(|| {
                    format!("messages with role 'tool' must be a response to a preceeding message with 'tool_calls': {id}")
                })?;
                self.open.remove(position);
                self.transcript.add_text(&text_of(&message["content"])?);
                Ok(())
            }
            other => Err(format!("Invalid value: '{other}' is not a role")),
        }
    }

    fn assistant(&mut self, message: &Value) -> Result<(), String> {
        let calls = message["tool_calls"].as_array();
        if calls.is_some_and(Vec::is_empty) {
            return Err("'tool_calls' must be non-empty".to_owned());
        }
        if calls.is_none() && !message["content"].is_string() && !message["content"].is_array() {
            return Err("'content' is required without 'tool_calls'".to_owned());
        }
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().filter(|_| call["type"] == "function");
            let id = id.ok_or("tool_calls need id and type 'function'")?;
            let arguments = call["function"]["arguments"]
                .as_str()
                .ok_or("'arguments' must be a string")?;
            call["function"]["name"]
                .as_str()
                .ok_or("'function.name' is required")?;
            serde_json::from_str::<Value>(arguments).map_err(|_| "'arguments' must be JSON in a string")?;
            self.open.push(id.to_owned());
        }
        self.transcript.add_turn();
        Ok(())
    }

    fn end(self) -> Result<PlayedTranscript, String> {
        if !self.open.is_empty() {
            return Err(format!("tool calls without a result: {}", self.open.join(", ")));
        }
        let transcript = self.transcript.build();
        transcript.ok_or_else(|| "the last message must be the user's or a tool's".to_owned())
    }
}

fn text_of(content: &Value) -> Result<String, String> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts.iter().map(read_part).collect(),
        _ => Err("Invalid type for 'content': expected a string or an array".to_owned()),
    }
}

fn read_part(part: &Value) -> Result<String, String> {
    match part["type"].as_str() {
        Some("image_url") => {
            let url = part["image_url"]["url"].as_str().unwrap_or_default();
            let data = url
                .strip_prefix("data:")
                .and_then(|url| url.split_once(";base64,"));
            let (media_type, data) = data.ok_or("Invalid 'image_url': expected a data URL")?;
            super::dialect::describe_image(media_type, Some(data))
        }
        Some(_) | None => Ok(part["text"].as_str().unwrap_or_default().to_owned()),
    }
}

/// Renders an error body.
pub(super) fn render_error(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

/// Renders the reply as one JSON body.
pub(super) fn render_reply(reply: &PlayedReply) -> Value {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": call.input.to_string()});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": render_content(reply), "refusal": null});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    json!({
        "id": reply.id, "object": "chat.completion", "created": 1_700_000_000, "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply), "logprobs": null}],
        "usage": render_usage(reply),
    })
}

/// Renders the reply as server-sent events.
pub(super) fn stream_reply(reply: &PlayedReply, include_usage: bool) -> String {
    let mut deltas =
        vec![json!({"role": "assistant", "content": render_content(reply).as_str().map(|_| "")})];
    deltas.extend(split_pieces(&reply.text).map(|piece| json!({"content": piece})));
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        deltas.push(json!({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}));
        let input = call.input.to_string();
        deltas.extend(
            split_pieces(&input)
                .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
        );
    }
    let mut chunks: Vec<Value> = deltas
        .into_iter()
        .map(|delta| {
            render_chunk(
                reply,
                json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            )
        })
        .collect();
    chunks.push(render_chunk(
        reply,
        json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}]),
    ));
    if include_usage {
        let mut last = render_chunk(reply, json!([]));
        last["usage"] = render_usage(reply);
        chunks.push(last);
    }
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    lines + "data: [DONE]\n\n"
}

fn render_chunk(reply: &PlayedReply, choices: Value) -> Value {
    json!({
        "id": reply.id, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": reply.model,
        "choices": choices, "usage": null,
    })
}

fn render_content(reply: &PlayedReply) -> Value {
    if reply.text.is_empty() {
        Value::Null
    } else {
        Value::String(reply.text.clone())
    }
}

fn finish_reason(reply: &PlayedReply) -> &'static str {
    if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

fn render_usage(reply: &PlayedReply) -> Value {
    let prompt = reply.input.plain + reply.input.read;
    json!({
        "prompt_tokens": prompt, "completion_tokens": reply.output_tokens,
        "total_tokens": prompt + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.input.read},
    })
}
