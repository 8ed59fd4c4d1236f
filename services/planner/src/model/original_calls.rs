//! Calls of `OpenAI`'s dialects in their original form, which the same model gets back.

use domain::{ReplyBlock, ToolCall};
use serde_json::{Map, Value, json};

use super::{dialect::ModelRequest, split_characters, stream::opaque_block};

// Dialect of the block that keeps what a normalized call loses.
const ORIGINALS: &str = "openai_calls";
// Longer arguments are sent back in normalized form, so that the journal keeps them once.
const MOST_ORIGINAL_BYTES: usize = 16 * 1024;

/// Returns the original form of a call, where it differs from the normalized form; otherwise null.
pub(super) fn build_original(id: &str, text: String, input: &Value, mut extra: Value) -> Value {
    let mut kept = Map::new();
    let is_strict =
        input.is_object() && serde_json::from_str::<Value>(&text).is_ok_and(|value| value == *input);
    let canonical = input.to_string();
    if is_strict && text.len() <= MOST_ORIGINAL_BYTES && text != canonical {
        kept.insert("arguments".to_owned(), Value::String(text));
    }
    if extra.is_object() && extra.to_string().len() <= MOST_ORIGINAL_BYTES {
        split_characters::join_all(&mut extra);
        kept.insert("extra_content".to_owned(), extra);
    }
    if kept.is_empty() {
        return Value::Null;
    }
    kept.insert("id".to_owned(), Value::String(id.to_owned()));
    Value::Object(kept)
}

/// Returns the block with the original forms of a reply's calls; `None` when no call differs.
pub(super) fn originals_block(originals: Vec<Value>) -> Option<ReplyBlock> {
    let is_needed = originals.iter().any(|original| !original.is_null());
    is_needed.then(|| opaque_block(ORIGINALS, json!({ "calls": originals })))
}

/// Returns the original calls of the same model, by their place.
pub(super) fn find_originals<'a>(ask: &ModelRequest<'_>, blocks: &'a [ReplyBlock]) -> &'a [Value] {
    let kept = blocks.iter().find_map(|block| match block {
        ReplyBlock::Opaque {
            dialect,
            provider,
            model,
            value,
        } if ask.owns(dialect, ORIGINALS, provider, model) => value["calls"].as_array(),
        ReplyBlock::Opaque { .. } | ReplyBlock::Text { .. } | ReplyBlock::ToolCall(_) => None,
    });
    kept.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the arguments of a call as text, in their original form if that is known: a normalized form
/// differs from the text in the provider's cache.
pub(super) fn render_arguments(call: &ToolCall, original: &Value) -> String {
    if original["arguments"].is_string() && call.input.is_object() {
        original["arguments"].as_str().unwrap_or_default().to_owned()
    } else if let Value::String(text) = &call.input {
        // Some servers parse the arguments of earlier calls and fail on invalid JSON.
        json!({ "invalid": text }).to_string()
    } else {
        call.input.to_string()
    }
}
