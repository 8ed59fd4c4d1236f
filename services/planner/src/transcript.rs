//! Content of one model call, independent of the provider: its messages, the form of its reply, and the typed
//! parsing of a reply in that form.

use std::{io, sync::Arc};

use domain::{ImageFormat, ModelReply, ObjectRef, ReplyBlock, ReplyStop, ToolResult, ToolSpec};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Content of one model call, independent of the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelTranscript {
    /// System prompt in blocks, the most widely shared first: the phase's own text, then the repository's
    /// block.
    pub(crate) system: Vec<String>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) messages: Vec<TranscriptMessage>,
    /// Form of the reply, unless it is free text.
    pub(crate) output: Option<OutputSchema>,
}

impl ModelTranscript {
    /// Returns true if a message has an image.
    pub(crate) fn has_images(&self) -> bool {
        self.messages.iter().any(|message| match message {
            TranscriptMessage::Parts(parts) => parts.iter().any(|part| matches!(part, MessagePart::Image(_))),
            TranscriptMessage::User(_)
            | TranscriptMessage::Assistant(_)
            | TranscriptMessage::ToolResults(_) => false,
        })
    }

    /// Returns the approximate length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let system = self.system.iter().map(String::len);
        let tools = self.tools.iter().map(measure_json);
        let messages = self.messages.iter().map(|message| match message {
            TranscriptMessage::User(words) => words.len(),
            TranscriptMessage::Parts(parts) => parts.iter().map(MessagePart::bytes).sum(),
            TranscriptMessage::Assistant(blocks) => measure_json(blocks),
            TranscriptMessage::ToolResults(results) => {
                results.iter().map(|(_, result)| result.content.len()).sum()
            }
        });
        system.chain(tools).chain(messages).sum()
    }
}

/// Returns the length of a value as JSON in bytes.
pub(crate) fn measure_json(value: &impl Serialize) -> usize {
    let mut length = ByteCount(0);
    serde_json::to_writer(&mut length, value).map_or(0, |()| length.0)
}

/// Writer that counts its bytes.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TranscriptMessage {
    User(String),
    /// Message of the user with images.
    Parts(Vec<MessagePart>),
    /// Reply of the model, verbatim.
    Assistant(Vec<ReplyBlock>),
    /// Results of the reply's tool calls, in order: the model's call id and the result.
    ToolResults(Vec<(String, ToolResult)>),
}

/// Part of a user's message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MessagePart {
    Text(String),
    Image(TranscriptImage),
}

impl MessagePart {
    /// Returns the bytes of a text with as many tokens.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image(image) => image.tokens() * TOKEN_BYTES,
        }
    }
}

// Bytes of text that count as one token.
const TOKEN_BYTES: usize = 4;
// Providers count an image by its area, and scale a larger one down to this many tokens.
const PIXELS_PER_TOKEN: u64 = 750;
const MOST_IMAGE_TOKENS: u64 = 1_600;

/// Image for the model. Journals and prompts name its content; the bytes are added for one call.
#[derive(Clone, PartialEq)]
pub(crate) struct TranscriptImage {
    pub(crate) name: String,
    /// Alternative text; may be empty.
    pub(crate) alt: String,
    pub(crate) format: ImageFormat,
    pub(crate) object: ObjectRef,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Content in base64; absent until it is loaded, or when it cannot be.
    pub(crate) data: Option<Arc<str>>,
}

// The content would fill the log.
impl std::fmt::Debug for TranscriptImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TranscriptImage")
            .field("name", &self.name)
            .field("object", &self.object)
            .finish_non_exhaustive()
    }
}

impl TranscriptImage {
    /// Returns the approximate number of tokens.
    fn tokens(&self) -> usize {
        let area = u64::from(self.width) * u64::from(self.height);
        let tokens = (area / PIXELS_PER_TOKEN).clamp(1, MOST_IMAGE_TOKENS);
        usize::try_from(tokens).unwrap_or(usize::MAX)
    }

    /// Returns the text in place of an image that the model does not see.
    pub(crate) fn placeholder(&self) -> String {
        match self.alt.as_str() {
            "" => format!("(image `{}`, not shown)", self.name),
            alt => format!("(image `{}`, not shown: {alt})", self.name),
        }
    }
}

/// Form of a reply: one JSON object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutputSchema {
    /// Short name: letters, digits, `_` and `-`.
    pub(crate) name: String,
    /// JSON schema of type `object`.
    pub(crate) schema: Value,
}

// Keywords that providers refuse; the planner checks them after the reply.
const UNCHECKED: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "default",
];

impl OutputSchema {
    /// Returns the schema for providers: objects are closed, and refused keywords are omitted.
    pub(crate) fn for_provider(&self) -> Value {
        close_objects(&self.schema)
    }

    /// Returns true if every property of every object is required, as strict modes need.
    pub(crate) fn is_strict(&self) -> bool {
        requires_all(&self.schema)
    }
}

fn close_objects(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut out: Map<String, Value> = fields
                .iter()
                .filter(|(key, value)| !UNCHECKED.contains(&key.as_str()) || value.is_object())
                .map(|(key, value)| (key.clone(), close_objects(value)))
                .collect();
            if fields.get("type").is_some_and(|kind| kind == "object") && fields.contains_key("properties") {
                out.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Value::Object(out)
        }
        Value::Array(items) => Value::Array(items.iter().map(close_objects).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn requires_all(schema: &Value) -> bool {
    let here = match (schema["properties"].as_object(), schema["required"].as_array()) {
        (None, _) => true,
        (Some(properties), required) => properties
            .keys()
            .all(|key| required.is_some_and(|required| required.iter().any(|name| name == key))),
    };
    here && match schema {
        Value::Object(fields) => fields.values().all(requires_all),
        Value::Array(items) => items.iter().all(requires_all),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Parses a structured reply.
///
/// # Errors
/// The place and the problem, for the model.
pub(crate) fn read_structured<T: DeserializeOwned>(reply: &ModelReply) -> Result<T, String> {
    // Reported before the parser's error, which would name the place of the truncation only.
    if reply.stop == ReplyStop::MaxTokens {
        return Err("it was truncated at the token limit, so be shorter".to_owned());
    }
    let text = reply.text();
    let mut json = serde_json::Deserializer::from_str(extract_object(&text));
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let place = error.path().to_string();
        match place.as_str() {
            "." => error.inner().to_string(),
            _ => format!("at `{place}`: {}", error.inner()),
        }
    })?;
    json.end()
        .map_err(|_| "there is text after the JSON object".to_owned())?;
    Ok(value)
}

/// Returns the object from a text with a code fence or words around it: some servers ignore the schema.
fn extract_object(text: &str) -> &str {
    let start = text.find('{');
    let end = text.rfind('}').map(|place| place + 1);
    match (start, end) {
        (Some(start), Some(end)) if start < end => &text[start..end],
        _ => text.trim(),
    }
}

#[cfg(test)]
mod tests {
    use domain::{ReplyBlock, TokenUsage};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Verdict {
        kind: String,
        files: Vec<File>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct File {
        path: String,
    }

    fn build_reply(stop: ReplyStop, text: &str) -> ModelReply {
        ModelReply {
            blocks: vec![ReplyBlock::Text {
                text: text.to_owned(),
            }],
            stop,
            usage: TokenUsage::default(),
            model: "m".to_owned(),
            provider: "default".to_owned(),
            cost_micros: None,
        }
    }

    fn parse_verdict(text: &str) -> Result<Verdict, String> {
        read_structured(&build_reply(ReplyStop::EndTurn, text))
    }

    #[test]
    fn measured_length_equals_serialized_text() {
        let values = [
            json!(null),
            json!("a \"quote\", a line\nbreak, ü and \u{1}"),
            json!({ "type": "object", "properties": { "path": { "enum": ["a", 1, -2.5, true] } } }),
        ];
        for value in values {
            assert_eq!(measure_json(&value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn image_counts_by_area_within_limit() {
        let build = |width, height| TranscriptImage {
            name: "x.png".to_owned(),
            alt: String::new(),
            format: ImageFormat::Png,
            object: ObjectRef {
                sha256: "a".repeat(64),
                size_bytes: 1,
            },
            width,
            height,
            data: Some("x".repeat(100_000).into()),
        };
        assert_eq!(build(1, 1).tokens(), 1);
        assert_eq!(build(750, 100).tokens(), 100);
        assert_eq!(build(8_000, 8_000).tokens(), 1_600);
        let text = MessagePart::Text("four".to_owned());
        let message = TranscriptMessage::Parts(vec![text, MessagePart::Image(build(750, 100))]);
        let transcript = ModelTranscript {
            system: Vec::new(),
            tools: Vec::new(),
            messages: vec![message],
            output: None,
        };
        assert_eq!(transcript.bytes(), 404, "the content itself does not count");
        assert_eq!(build(1, 1).placeholder(), "(image `x.png`, not shown)");
    }

    #[test]
    fn structured_reply_is_read_despite_fence() {
        let wanted = Verdict {
            kind: "bug".to_owned(),
            files: vec![File {
                path: "a.py".to_owned(),
            }],
        };
        let json = r#"{"kind":"bug","files":[{"path":"a.py"}]}"#;
        for text in [
            json.to_owned(),
            format!("```json\n{json}\n```"),
            format!("Here:\n{json}\n"),
        ] {
            assert_eq!(parse_verdict(&text).as_ref(), Ok(&wanted), "{text}");
        }
    }

    #[test]
    fn reply_problem_names_its_place() {
        let cases = [
            (
                r#"{"kind":"bug","files":[{"way":"a.py"}]}"#,
                "at `files[0]`: missing field `path`",
            ),
            (r#"{"kind":"bug","files":[],"mood":1}"#, "unknown field `mood`"),
            ("I would rather not.", "expected value"),
            (r#"{"kind":"bug","files":["#, "EOF while parsing"),
        ];
        for (text, exact) in cases {
            let problem = parse_verdict(text).unwrap_err();
            assert!(problem.contains(exact), "{problem}");
        }
    }

    #[test]
    fn truncated_reply_is_not_read() {
        let json = r#"{"kind":"bug","files":[]}"#;
        let parsed = |stop| read_structured::<Verdict>(&build_reply(stop, json));
        assert!(parsed(ReplyStop::MaxTokens).unwrap_err().contains("be shorter"));
        assert!(parsed(ReplyStop::EndTurn).is_ok());
    }

    #[test]
    fn provider_schema_is_closed_without_limits() {
        let schema = OutputSchema {
            name: "verdict".to_owned(),
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "maxLength": 10 },
                    "files": { "type": "array", "maxItems": 3, "items": {
                        "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
                    } },
                },
                "required": ["pattern", "files"],
            }),
        };
        assert_eq!(
            schema.for_provider(),
            json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string" },
                    "files": { "type": "array", "items": {
                        "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
                        "additionalProperties": false,
                    } },
                },
                "required": ["pattern", "files"],
                "additionalProperties": false,
            })
        );
        assert!(schema.is_strict());
        let loose = json!({ "type": "object", "properties": { "note": { "type": "string" } } });
        assert!(
            !OutputSchema {
                schema: loose,
                ..schema
            }
            .is_strict()
        );
    }
}
