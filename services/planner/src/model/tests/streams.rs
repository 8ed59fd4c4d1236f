//! Conversations from the vendors' documentation: the requests, and the replies in arbitrary pieces or
//! interrupted anywhere.

use bytes::Bytes;
use domain::{ModelFault, ModelReply, ReplyBlock, TokenUsage, ToolCall};
use futures::{StreamExt as _, stream};
use proptest::prelude::*;
use serde_json::Value;
use std::time::Duration;

use super::*;
use crate::model::dialect;
use crate::model::failure::AttemptFailure;
use crate::model::stream::{StreamFraming, collect_reply};
use crate::model::tool_name::ToolNames;

/// Conversation of a question, two calls and an answer.
struct Conversation {
    dialect: &'static str,
    more: Value,
    requests: [&'static str; 2],
    replies: [&'static str; 2],
}

macro_rules! conversation {
    ($dialect:literal, $more:expr) => {
        conversation!($dialect, $dialect, $more)
    };
    ($folder:literal, $dialect:literal, $more:expr) => {
        Conversation {
            dialect: $dialect,
            more: $more,
            requests: [
                include_str!(concat!("conversations/", $folder, "/1-request.json")),
                include_str!(concat!("conversations/", $folder, "/2-request.json")),
            ],
            replies: [
                include_str!(concat!("conversations/", $folder, "/1-reply.txt")),
                include_str!(concat!("conversations/", $folder, "/2-reply.txt")),
            ],
        }
    };
}

fn build_conversations() -> [Conversation; 5] {
    let claude = json!({ "name": "claude-sonnet-5-5", "thinking": "adaptive", "region": "eu-central-1" });
    [
        conversation!("anthropic", claude.clone()),
        conversation!("openai", json!({ "name": "gpt-6-sol", "effort": "low" })),
        conversation!(
            "openai-responses",
            json!({ "name": "gpt-6-sol", "effort": "low" })
        ),
        conversation!("bedrock", claude),
        // Gemini sends each parallel call whole, all with the index 0, and a signature that it wants back.
        conversation!(
            "gemini",
            "openai",
            json!({
                "name": "gemini-3.5-flash",
                "base_url": "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            })
        ),
    ]
}

impl Conversation {
    fn settings(&self) -> ModelSettings {
        let all = json!({
            "dialect": self.dialect, "api_key": "k", "base_url": "http://127.0.0.1:1", "max_output_tokens": 4000,
        });
        build_settings(all, &self.more)
    }

    /// Returns a reply in its wire format.
    fn wire(&self, reply: usize) -> Vec<u8> {
        match self.framing() {
            StreamFraming::ServerSentEvents => self.replies[reply].as_bytes().to_vec(),
            StreamFraming::AwsEventStream => self.replies[reply].lines().flat_map(encode_chunk).collect(),
        }
    }

    fn framing(&self) -> StreamFraming {
        dialect::find_dialect(self.dialect).unwrap().framing()
    }

    fn read(&self, pieces: Vec<Bytes>) -> Result<ModelReply, AttemptFailure> {
        read_pieces(self.dialect, pieces)
    }
}

/// Returns a Bedrock frame with one event.
pub(super) fn encode_chunk(event: &str) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let payload = json!({ "bytes": STANDARD.encode(event), "p": "abcdefghijk" }).to_string();
    let headers = [
        (":event-type", "chunk"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    testkit::model::encode_event_frame(&headers, payload.as_bytes())
}

fn read_pieces(dialect: &str, pieces: Vec<Bytes>) -> Result<ModelReply, AttemptFailure> {
    read_offering(&["get_weather"], dialect, pieces)
}

/// Reads the reply to a request that offers these tools.
pub(super) fn read_offering(
    tools: &[&str],
    dialect: &str,
    pieces: Vec<Bytes>,
) -> Result<ModelReply, AttemptFailure> {
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: json!({ "type": "object" }),
        read_only: true,
    };
    let tools: Vec<ToolSpec> = tools.iter().map(tool).collect();
    let dialect = dialect::find_dialect(dialect).unwrap();
    let pieces = stream::iter(pieces.into_iter().map(Ok));
    let idle = Duration::from_secs(5);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(collect_reply(
        dialect.framing(),
        true,
        pieces,
        idle,
        dialect.collector(ToolNames::of(&tools)),
    ))
}

fn wrap_bytes(bytes: &[u8]) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(bytes)]
}

fn build_question_transcript() -> ModelTranscript {
    ModelTranscript {
        system: vec!["Answer.".to_owned(), "Be brief.".to_owned()],
        tools: vec![ToolSpec {
            name: "get_weather".to_owned(),
            description: "The weather of a place.".to_owned(),
            input_schema: json!({
                "type": "object", "properties": { "location": { "type": "string" } }, "required": ["location"],
            }),
            read_only: true,
        }],
        messages: vec![TranscriptMessage::User(
            "What's the weather in Paris and in Łódź?".to_owned(),
        )],
        output: None,
    }
}

#[test]
fn conversations_go_as_the_vendors_describe_them() {
    for conversation in build_conversations() {
        let (settings, mut transcript) = (conversation.settings(), build_question_transcript());
        let wanted = |turn: usize| -> Value { serde_json::from_str(conversation.requests[turn]).unwrap() };
        let dialect = conversation.dialect;
        assert_eq!(
            super::bodies::build_request_body(&settings, &transcript),
            wanted(0),
            "{dialect}"
        );
        let reply = conversation.read(wrap_bytes(&conversation.wire(0))).unwrap();
        assert_eq!(reply.stop, ReplyStop::ToolUse);
        assert_eq!(reply.text(), "I'll look both up ☀.");
        let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
        assert_eq!(calls[0].input, json!({ "location": "Paris" }));
        assert_eq!(calls[1].input, json!({ "location": "Łódź" }));
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (2312, 89));

        let results = [
            ToolResult::ok("15 °C, sunny"),
            ToolResult::error("no such station"),
        ];
        append_turn(&mut transcript, stamp_reply(reply, &settings.name), results);
        assert_eq!(
            super::bodies::build_request_body(&settings, &transcript),
            wanted(1),
            "{dialect}"
        );
        let reply = conversation.read(wrap_bytes(&conversation.wire(1))).unwrap();
        assert_eq!(reply.stop, ReplyStop::EndTurn);
        assert_eq!(reply.text(), "Paris has 15 °C and sun; of Łódź nothing is known.");
        assert_eq!(reply.usage.input_tokens, 2484);
        assert!(reply.usage.cache_read_tokens >= 2300);
    }
}

#[test]
fn anthropic_counts_hour_cache_writes() {
    let conversation = &build_conversations()[0];
    let usage = conversation
        .read(wrap_bytes(&conversation.wire(0)))
        .unwrap()
        .usage;
    let wanted = TokenUsage {
        input_tokens: 2312,
        output_tokens: 89,
        cache_read_tokens: 0,
        cache_write_tokens: 2300,
        cache_write_1h_tokens: 2000,
    };
    assert_eq!(usage, wanted);
}

#[test]
fn truncated_reply_is_never_taken_as_complete() {
    for conversation in build_conversations() {
        for turn in 0..2 {
            let wire = conversation.wire(turn);
            let reply = conversation.read(wrap_bytes(&wire)).unwrap();
            for cut in 0..wire.len() {
                match conversation.read(wrap_bytes(&wire[..cut])) {
                    // Token counts follow the end of the reply.
                    Ok(other) => {
                        let known = (&reply.blocks, reply.stop);
                        assert_eq!(
                            (&other.blocks, other.stop),
                            known,
                            "{} cut at {cut}",
                            conversation.dialect
                        );
                    }
                    Err(failure) => {
                        let kind = failure.kind();
                        assert_eq!(
                            kind,
                            ModelFault::Unavailable,
                            "{} cut at {cut}: {failure:?}",
                            conversation.dialect
                        );
                    }
                }
            }
        }
    }
}

/// Splits the bytes at these places.
pub(super) fn split_bytes(bytes: &[u8], ends: &[prop::sample::Index]) -> Vec<Bytes> {
    let mut ends: Vec<usize> = ends.iter().map(|end| end.index(bytes.len() + 1)).collect();
    ends.extend([0, bytes.len()]);
    ends.sort_unstable();
    ends.windows(2)
        .map(|pair| Bytes::copy_from_slice(&bytes[pair[0]..pair[1]]))
        .collect()
}

/// Returns the events of a reply in the forms that servers give to an event stream.
fn list_framings(wire: &str) -> Vec<(&'static str, String)> {
    let spread = |line: &str| {
        let value: Option<Value> = line
            .strip_prefix("data: ")
            .and_then(|data| serde_json::from_str(data).ok());
        match value {
            Some(value) => format!("{value:#}")
                .lines()
                .map(|line| format!("data: {line}\n"))
                .collect(),
            None => format!("{line}\n"),
        }
    };
    vec![
        ("line ends of Windows", wire.replace('\n', "\r\n")),
        ("a byte order mark", format!("\u{feff}{wire}")),
        ("two byte order marks", format!("\u{feff}\u{feff}{wire}")),
        (
            "comments and empty events",
            wire.replace("\n\n", "\n\n: keep-alive\n\ndata:\n\n"),
        ),
        ("no blank after the field", wire.replace("data: ", "data:")),
        (
            "further fields",
            wire.replace("data: ", "id: 7\nretry: 100\ndata: "),
        ),
        ("data in several lines", wire.lines().map(spread).collect()),
    ]
}

/// Returns the conversations whose replies are lines of text.
fn build_text_conversations() -> impl Iterator<Item = Conversation> {
    let is_text = |conversation: &Conversation| conversation.framing() == StreamFraming::ServerSentEvents;
    build_conversations().into_iter().filter(is_text)
}

#[test]
fn reply_is_independent_of_event_framing() {
    for conversation in build_text_conversations() {
        for reply in conversation.replies {
            let wanted = conversation.read(wrap_bytes(reply.as_bytes()));
            for (framing, wire) in list_framings(reply) {
                let read = conversation.read(wrap_bytes(wire.as_bytes()));
                assert_eq!(read, wanted, "{}: {framing}", conversation.dialect);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn comments_keep_waiting_reply_alive() {
    let idle = Duration::from_secs(60);
    let wire = build_conversations()[1].replies[1];
    let read = async |lines: Vec<&'static str>, pause: Duration| {
        let pieces = stream::iter(lines).then(move |line| async move {
            tokio::time::sleep(pause).await;
            Ok(Bytes::from(line))
        });
        let dialect = dialect::find_dialect("openai").unwrap();
        let collector = dialect.collector(ToolNames::of(&[]));
        collect_reply(dialect.framing(), true, Box::pin(pieces), idle, collector).await
    };
    let mut lines = vec![": processing\n\n"; 10];
    lines.push(wire);
    let reply = read(lines, Duration::from_secs(50)).await.unwrap();
    assert_eq!(reply.stop, ReplyStop::EndTurn);
    let failure = read(vec![": processing\n\n", wire], Duration::from_secs(70))
        .await
        .unwrap_err();
    assert_eq!(failure.kind(), ModelFault::Unavailable);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn fuzz_framed_reply_is_equal_in_any_pieces(
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        turn in 0_usize..2,
    ) {
        for conversation in build_text_conversations() {
            let wanted = conversation.read(wrap_bytes(conversation.replies[turn].as_bytes()));
            for (framing, wire) in list_framings(conversation.replies[turn]) {
                let read = conversation.read(split_bytes(wire.as_bytes(), &ends));
                prop_assert_eq!(&read, &wanted, "{}: {}", conversation.dialect, framing);
            }
        }
    }

    #[test]
    fn reply_is_independent_of_stream_pieces(
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        turn in 0_usize..2,
    ) {
        for conversation in build_conversations() {
            let wire = conversation.wire(turn);
            let reply = conversation.read(wrap_bytes(&wire)).unwrap();
            let again = conversation.read(split_bytes(&wire, &ends));
            prop_assert_eq!(again, Ok(reply), "{}", conversation.dialect);
        }
    }

    #[test]
    fn damaged_reply_never_panics(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        for conversation in build_conversations() {
            let mut wire = conversation.wire(0);
            let place = place.index(wire.len());
            wire[place] = byte;
            let read = conversation.read(wrap_bytes(&wire));
            // Frames have checksums, so no damage changes a reply. A last frame that claims to be longer is an interruption
            // after the whole reply.
            if conversation.framing() == StreamFraming::AwsEventStream && conversation.wire(0) != wire {
                let intact = conversation.read(wrap_bytes(&conversation.wire(0)));
                prop_assert!(read.is_err() || read == intact);
            }
        }
    }
}

#[test]
fn mid_stream_errors_are_classified() {
    let event = |class: &str, message: &str| {
        let error = json!({ "type": "error", "error": { "type": class, "message": message } });
        format!("event: error\ndata: {error}\n\n").into_bytes()
    };
    let chunk = |error: Value| format!("data: {}\n\n", json!({ "error": error })).into_bytes();
    let exception = |class: &str, message: &str| {
        let headers = [(":message-type", "exception"), (":exception-type", class)];
        testkit::model::encode_event_frame(&headers, json!({ "message": message }).to_string().as_bytes())
    };
    let cases = [
        (
            "anthropic",
            event("overloaded_error", "Overloaded"),
            ModelFault::Unavailable,
        ),
        ("anthropic", event("api_error", "Oops"), ModelFault::Unavailable),
        (
            "anthropic",
            event("invalid_request_error", "prompt is too long"),
            ModelFault::ContextTooLong,
        ),
        (
            "anthropic",
            event("authentication_error", "no"),
            ModelFault::CredentialsRefused,
        ),
        (
            "openai",
            chunk(json!({ "code": 502, "message": "Provider disconnected" })),
            ModelFault::Unavailable,
        ),
        (
            "openai",
            chunk(json!({ "code": "context_length_exceeded", "message": "" })),
            ModelFault::ContextTooLong,
        ),
        (
            "bedrock",
            exception("throttlingException", "Too many requests"),
            ModelFault::Unavailable,
        ),
        (
            "bedrock",
            exception("modelStreamErrorException", "Oops"),
            ModelFault::Unavailable,
        ),
        (
            "bedrock",
            exception("validationException", "Input is too long"),
            ModelFault::ContextTooLong,
        ),
        (
            "bedrock",
            exception("validationException", "tools: no"),
            ModelFault::Refused,
        ),
    ];
    for (dialect, wire, kind) in cases {
        let failure = read_pieces(dialect, wrap_bytes(&wire)).unwrap_err();
        assert_eq!(failure.kind(), kind, "{dialect}: {failure:?}");
    }
}

#[test]
fn reasoning_in_parts_is_put_together_again() {
    let part = |piece: Value| {
        let delta = json!({ "reasoning_details": [piece] });
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
    };
    let chunks = [
        part(json!({ "type": "reasoning.text", "text": "Two ", "index": 0, "signature": null })),
        part(json!({ "type": "reasoning.text", "text": "places.", "index": 0 })),
        part(json!({ "type": "reasoning.text", "signature": "sig", "index": 0 })),
        json!({ "choices": [{ "index": 0, "delta": { "content": "Hm." }, "finish_reason": "stop" }] }),
    ];
    let mut wire: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    wire.push_str("data: [DONE]\n\n");
    let reply = read_pieces("openai", wrap_bytes(wire.as_bytes())).unwrap();
    let Some(ReplyBlock::Opaque { value, .. }) = reply.blocks.first() else {
        panic!("no reasoning in {reply:?}");
    };
    assert_eq!(
        value["reasoning_details"],
        json!([{ "type": "reasoning.text", "text": "Two places.", "index": 0, "signature": "sig" }])
    );
}
