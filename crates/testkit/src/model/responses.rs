//! `OpenAI` Responses dialect: validation of stateless requests, and rendering of replies as JSON or
//! server-sent events.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::reply::{PlayedCall, PlayedReply, split_pieces};
use super::script::{PlayedTranscript, TranscriptBuilder};

const KNOWN: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "store",
    "include",
    "reasoning",
    "text",
    "temperature",
    "top_p",
    "max_output_tokens",
    "max_tool_calls",
    "truncation",
    "user",
    "metadata",
    "service_tier",
    "prompt_cache_key",
    "safety_identifier",
];
const INCLUDED: &str = "reasoning.encrypted_content";
// Characters of a call id.
const LONGEST_ID: usize = 64;
// Details of an image that a model can get.
const DETAILS: [&str; 4] = ["auto", "low", "high", "original"];
// The service refuses a smaller limit.
const LEAST_OUTPUT: u64 = 16;

/// Parses and validates a request. The error has the wording of the real service.
pub(super) fn read_request(body: &Value) -> Result<PlayedTranscript, String> {
    let fields = body
        .as_object()
        .ok_or("We could not parse the JSON body of your request.")?;
    // Nothing is stored here, so there is no earlier response either.
    if !body["previous_response_id"].is_null() {
        return Err(format!(
            "Previous response with id {} not found.",
            body["previous_response_id"]
        ));
    }
    if let Some(unknown) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("Unknown parameter: '{unknown}'."));
    }
    let model = body["model"]
        .as_str()
        .ok_or("Missing required parameter: 'model'.")?;
    if body["store"] != false {
        return Err("the stand-in stores no response: 'store' must be false".to_owned());
    }
    if body["max_output_tokens"]
        .as_u64()
        .is_some_and(|tokens| tokens < LEAST_OUTPUT)
    {
        return Err(format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}."
        ));
    }
    for wanted in body["include"].as_array().into_iter().flatten() {
        if wanted != INCLUDED {
            return Err(format!("Invalid value: {wanted} in 'include'."));
        }
    }
    let tools = read_tools(&body["tools"])?;
    check_output(&body["text"]["format"])?;
    let mut reader = InputReader {
        model,
        transcript: TranscriptBuilder::new(tools),
        open: Vec::new(),
        reasoning: None,
        is_in_reply: false,
    };
    let input = body["input"].as_array().filter(|list| !list.is_empty());
    let input = input.ok_or("Invalid type for 'input': expected a non-empty array of items.")?;
    for (index, item) in input.iter().enumerate() {
        reader
            .item(item)
            .map_err(|problem| format!("input[{index}]: {problem}"))?;
    }
    reader.end()
}

fn read_tools(tools: &Value) -> Result<Vec<String>, String> {
    let Some(list) = tools.as_array() else {
        return Ok(Vec::new());
    };
    list.iter()
        .map(|tool| {
            let named = tool["name"].as_str().filter(|_| tool["type"] == "function");
            let name = named.ok_or("Missing required parameter: 'tools[].name'.")?;
            if tool["parameters"]["type"] != "object" {
                return Err(format!(
                    "Invalid schema for function '{name}': schema must be of type object"
                ));
            }
            // Unless the request says otherwise, the service takes a function as strict.
            if tool["strict"] != false {
                super::dialect::check_schema(&tool["parameters"], true)
                    .map_err(|problem| format!("Invalid schema for function '{name}': {problem}"))?;
            }
            Ok(name.to_owned())
        })
        .collect()
}

fn check_output(format: &Value) -> Result<(), String> {
    if format.is_null() || format["type"] == "text" {
        return Ok(());
    }
    if format["type"] != "json_schema" || !format["name"].is_string() {
        return Err("Missing required parameter: 'text.format.name'.".to_owned());
    }
    super::dialect::check_schema(&format["schema"], format["strict"] == true)
        .map_err(|problem| format!("Invalid schema for response_format: {problem}"))
}

struct InputReader<'a> {
    model: &'a str,
    transcript: TranscriptBuilder,
    /// Calls without a result.
    open: Vec<String>,
    /// Reasoning whose following item is missing.
    reasoning: Option<String>,
    /// True between the first and the last item of a reply.
    is_in_reply: bool,
}

impl InputReader<'_> {
    fn item(&mut self, item: &Value) -> Result<(), String> {
        // A message may omit its type.
        let kind = item["type"].as_str().or(item["role"].as_str().map(|_| "message"));
        match kind {
            Some("message") => match item["role"].as_str() {
                Some("assistant") => {
                    check_parts(&item["content"], &["output_text", "refusal"])?;
                    self.begin_reply();
                    self.reasoning = None;
                    Ok(())
                }
                Some("user") => self.user_message(item),
                Some("system" | "developer") => check_parts(&item["content"], &["input_text"]).map(drop),
                Some(other) => Err(format!("Invalid value: '{other}' in 'role'.")),
                None => Err("Missing required parameter: 'role'.".to_owned()),
            },
            Some("reasoning") => self.reasoning(item),
            Some("function_call") => self.call(item),
            Some("function_call_output") => self.output(item),
            Some(other) => Err(format!("Invalid value: '{other}' in 'type'.")),
            None => Err("Missing required parameter: 'type'.".to_owned()),
        }
    }

    fn user_message(&mut self, item: &Value) -> Result<(), String> {
        let text = check_parts(&item["content"], &["input_text", "input_image"])?;
        self.end_reply()?;
        self.transcript.add_user_text(&text);
        Ok(())
    }

    fn reasoning(&mut self, item: &Value) -> Result<(), String> {
        let id = item["id"].as_str().ok_or("Missing required parameter: 'id'.")?;
        if !item["summary"].is_array() {
            return Err("Missing required parameter: 'summary'.".to_owned());
        }
        if !item["status"].is_null() {
            return Err("Unknown parameter: 'status'.".to_owned());
        }
        let content = item["encrypted_content"].as_str().ok_or_else(|| {
            format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` \
                 set to true, or remove this item from your input."
            )
        })?;
        if content != encrypt_reasoning(id, self.model) {
            return Err(format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted \
                 or parsed."
            ));
        }
        self.begin_reply();
        self.reasoning = Some(id.to_owned());
        Ok(())
    }

    fn call(&mut self, item: &Value) -> Result<(), String> {
        let id = item["call_id"]
            .as_str()
            .ok_or("Missing required parameter: 'call_id'.")?;
        if id.is_empty() || id.len() > LONGEST_ID {
            return Err(format!(
                "Invalid 'call_id': expected a string with 1 to {LONGEST_ID} characters."
            ));
        }
        item["name"]
            .as_str()
            .filter(|name| is_function_name(name))
            .ok_or("Invalid 'name': expected a string that matches '^[a-zA-Z0-9_-]+$'.")?;
        let arguments = item["arguments"]
            .as_str()
            .ok_or("Invalid type for 'arguments': expected a string.")?;
        serde_json::from_str::<Value>(arguments).map_err(|_| "'arguments' must be JSON in a string")?;
        self.begin_reply();
        self.reasoning = None;
        if self.open.iter().any(|open| open == id) {
            return Err(format!("Duplicate function call with call_id {id}."));
        }
        self.open.push(id.to_owned());
        Ok(())
    }

    fn output(&mut self, item: &Value) -> Result<(), String> {
        let id = item["call_id"]
            .as_str()
            .ok_or("Missing required parameter: 'call_id'.")?;
        let position = self.open.iter().position(|open| open == id);
        let position = position
            .ok_or_else(|| format!("No tool call found for function call output with call_id {id}."))?;
        self.open.remove(position);
        self.check_reasoning()?;
        self.is_in_reply = false;
        let text = match &item["output"] {
            Value::String(text) => text.clone(),
            parts => check_parts(parts, &["input_text", "input_image"])?,
        };
        self.transcript.add_text(&text);
        Ok(())
    }

    fn begin_reply(&mut self) {
        if !std::mem::replace(&mut self.is_in_reply, true) {
            self.transcript.add_turn();
        }
    }

    fn end_reply(&mut self) -> Result<(), String> {
        self.check_reasoning()?;
        self.is_in_reply = false;
        match self.open.first() {
            Some(open) => Err(format!("No tool output found for function call {open}.")),
            None => Ok(()),
        }
    }

    fn check_reasoning(&self) -> Result<(), String> {
        match &self.reasoning {
            Some(id) => Err(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            )),
            None => Ok(()),
        }
    }

    fn end(mut self) -> Result<PlayedTranscript, String> {
        let ended = self.end_reply();
        let transcript = self.transcript.build();
        let transcript = transcript.ok_or("the last item must be the user's or a tool's")?;
        ended.map(|()| transcript)
    }
}

/// Returns the text of a content, whose parts have one of these types.
fn check_parts(content: &Value, allowed: &[&str]) -> Result<String, String> {
    let parts = match content {
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => return Err("Invalid type for 'content': expected a string or an array.".to_owned()),
    };
    let mut text = String::new();
    for part in parts {
        let kind = part["type"]
            .as_str()
            .ok_or("Missing required parameter: 'content[].type'.")?;
        if !allowed.contains(&kind) {
            return Err(format!(
                "Invalid value: '{kind}'. Supported values are: {}.",
                allowed.join(", ")
            ));
        }
        if kind == "input_image" {
            text.push_str(&read_image(part)?);
        } else {
            let field = if kind == "refusal" { "refusal" } else { "text" };
            text.push_str(
                part[field]
                    .as_str()
                    .ok_or_else(|| format!("Missing required parameter: 'content[].{field}'."))?,
            );
        }
    }
    Ok(text)
}

/// Returns the description of an image, whose address must be a data URL: the stand-in fetches nothing.
fn read_image(part: &Value) -> Result<String, String> {
    if !part["detail"].is_null() && !DETAILS.iter().any(|known| part["detail"] == *known) {
        return Err(format!(
            "Invalid value for 'detail' of an image. Supported values are: {}.",
            DETAILS.join(", ")
        ));
    }
    let url = part["image_url"].as_str().unwrap_or_default();
    let data = url
        .strip_prefix("data:")
        .and_then(|url| url.split_once(";base64,"));
    let (media_type, data) = data.ok_or("Invalid 'image_url': expected a data URL with an image.")?;
    super::dialect::describe_image(media_type, Some(data))
        .map_err(|problem| format!("Invalid 'image_url': {problem}"))
}

fn is_function_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.chars().all(is_legal)
}

/// Returns the content of reasoning, which only the stand-in can read.
fn encrypt_reasoning(id: &str, model: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{model}\n{id}").as_bytes());
    HEXLOWER.encode(digest.as_ref())
}

/// Renders the reply as one JSON body. Without `is_encrypted` its reasoning has no content.
pub(super) fn render_reply(reply: &PlayedReply, is_encrypted: bool) -> Value {
    render_response(reply, "completed", &render_items(reply, is_encrypted))
}

/// Renders the reply as server-sent events.
pub(super) fn stream_reply(reply: &PlayedReply, is_encrypted: bool) -> String {
    let items = render_items(reply, is_encrypted);
    let mut events = vec![
        json!({"type": "response.created", "response": render_response(reply, "in_progress", &[])}),
        json!({"type": "response.in_progress", "response": render_response(reply, "in_progress", &[])}),
    ];
    for (index, item) in items.iter().enumerate() {
        push_item(&mut events, index, item);
    }
    events
        .push(json!({"type": "response.completed", "response": render_response(reply, "completed", &items)}));
    let numbered = events.iter_mut().enumerate().map(|(number, event)| {
        event["sequence_number"] = json!(number);
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap_or_default()
        )
    });
    numbered.collect()
}

/// Adds the events of an item: its start, its text or arguments in pieces, and the whole item.
fn push_item(events: &mut Vec<Value>, index: usize, item: &Value) {
    let mut start = item.clone();
    start["status"] = json!("in_progress");
    let id = &item["id"];
    match item["type"].as_str() {
        Some("message") => {
            start["content"] = json!([]);
            events.push(json!({"type": "response.output_item.added", "output_index": index, "item": start}));
            let part = json!({"type": "output_text", "text": "", "annotations": []});
            events.push(json!({
                "type": "response.content_part.added", "item_id": id, "output_index": index, "content_index": 0,
                "part": part,
            }));
            let text = item["content"][0]["text"].as_str().unwrap_or_default();
            events.extend(split_pieces(text).map(|piece| {
                json!({
                    "type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0,
                    "delta": piece,
                })
            }));
            events.push(json!({
                "type": "response.output_text.done", "item_id": id, "output_index": index, "content_index": 0,
                "text": text,
            }));
        }
        Some("function_call") => {
            start["arguments"] = json!("");
            events.push(json!({"type": "response.output_item.added", "output_index": index, "item": start}));
            let arguments = item["arguments"].as_str().unwrap_or_default();
            events.extend(split_pieces(arguments).map(|piece| {
                json!({
                    "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index,
                    "delta": piece,
                })
            }));
            events.push(json!({
                "type": "response.function_call_arguments.done", "item_id": id, "output_index": index,
                "arguments": arguments,
            }));
        }
        _ => {
            events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        }
    }
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}

fn render_items(reply: &PlayedReply, is_encrypted: bool) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(text) = &reply.thinking {
        let id = format!("rs_{}", reply.id);
        let mut item =
            json!({"id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]});
        if is_encrypted {
            item["encrypted_content"] = json!(encrypt_reasoning(&id, &reply.model));
        }
        items.push(item);
    }
    if !reply.text.is_empty() {
        items.push(json!({
            "id": format!("msg_{}", reply.id), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
        }));
    }
    items.extend(reply.calls.iter().map(render_call));
    items
}

fn render_call(call: &PlayedCall) -> Value {
    json!({
        "id": format!("fc_{}", call.id), "type": "function_call", "status": "completed", "call_id": call.id,
        "name": call.name, "arguments": call.input.to_string(),
    })
}

fn render_response(reply: &PlayedReply, status: &str, items: &[Value]) -> Value {
    let usage = match status {
        "completed" => render_usage(reply),
        _ => Value::Null,
    };
    json!({
        "id": format!("resp_{}", reply.id), "object": "response", "created_at": 1_700_000_000, "status": status,
        "model": reply.model, "output": items, "error": null, "incomplete_details": null, "store": false,
        "usage": usage,
    })
}

fn render_usage(reply: &PlayedReply) -> Value {
    let input = reply.input.plain + reply.input.read;
    let reasoning = reply
        .thinking
        .as_ref()
        .map_or(0, |text| text.len() as u64 / 4 + 1);
    let output = reply.output_tokens + reasoning;
    json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": reply.input.read},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    })
}

/// Returns true if a request asks for reasoning that it can send back.
pub(super) fn wants_reasoning(request: &Value) -> bool {
    let included = request["include"].as_array();
    included.is_some_and(|included| included.iter().any(|wanted| wanted == INCLUDED))
}
