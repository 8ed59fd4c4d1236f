//! Streams of gateways and local servers. Each case is the wire format of one kind of server, from public
//! bug reports.

use bytes::Bytes;
use domain::{ModelReply, ReplyBlock, ReplyStop, ToolCall};
use proptest::prelude::*;
use serde_json::Value;

use super::streams::{encode_chunk, read_offering};
use super::*;
use crate::model::failure::AttemptFailure;

const TOOLS: [&str; 3] = ["read_file", "list_directory", "finish"];

fn read_wire(dialect: &str, wire: &str) -> Result<ModelReply, AttemptFailure> {
    read_offering(&TOOLS, dialect, vec![Bytes::copy_from_slice(wire.as_bytes())])
}

/// Returns frames of Chat Completions, each with a delta, and the stop reason.
fn chat_stream(deltas: &[Value], reason: &Value, end: &str) -> String {
    let frame = |delta: &Value, reason: &Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "model": "m", "choices": [choice] }))
    };
    let usage =
        json!({ "model": "m", "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 5 } });
    let mut wire: String = deltas.iter().map(|delta| frame(delta, &Value::Null)).collect();
    wire += &frame(&json!({}), reason);
    wire += &format!("data: {usage}\n\n");
    wire + end
}

const DONE: &str = "data: [DONE]\n\n";

fn call_delta(call: Value) -> Value {
    json!({ "tool_calls": [call] })
}

/// Returns names and paths of a reply's calls.
fn list_call_paths(reply: &ModelReply) -> Vec<(String, String)> {
    let shown = |call: &ToolCall| {
        let path = call.input["path"].as_str().map(str::to_owned);
        (call.name.clone(), path.unwrap_or_else(|| call.input.to_string()))
    };
    reply.tool_calls().map(shown).collect()
}

fn build_expected_calls(paths: &[&str]) -> Vec<(String, String)> {
    paths
        .iter()
        .map(|path| ("read_file".to_owned(), (*path).to_owned()))
        .collect()
}

fn build_function(name: &str, arguments: impl Into<Value>) -> Value {
    json!({ "name": name, "arguments": arguments.into() })
}

fn whole_call(path: &str) -> Value {
    build_function("read_file", format!("{{\"path\": \"{path}\"}}"))
}

/// Returns the calls of `a` and `b` in the form of each kind of server.
fn two_calls() -> Vec<(&'static str, Vec<Value>)> {
    let (a, b) = (whole_call("a"), whole_call("b"));
    let piece = |text: &str| json!({ "arguments": text });
    vec![
        (
            "both with the index 0 and ids of their own",
            vec![
                call_delta(json!({ "index": 0, "id": "a", "type": "function", "function": a })),
                call_delta(json!({ "index": 0, "id": "b", "type": "function", "function": b })),
            ],
        ),
        (
            "both with the index 0 and no ids",
            vec![
                call_delta(json!({ "index": 0, "function": a })),
                call_delta(json!({ "index": 0, "function": b })),
            ],
        ),
        (
            "both with the index 0 and one id",
            vec![
                call_delta(json!({ "index": 0, "id": "same", "function": a })),
                call_delta(json!({ "index": 0, "id": "same", "function": b })),
            ],
        ),
        (
            "in one event",
            vec![
                json!({ "tool_calls": [{ "index": 0, "id": "a", "function": a }, { "index": 0, "id": "b", "function": b }] }),
            ],
        ),
        (
            "one id at two places",
            vec![
                call_delta(json!({ "index": 0, "id": "same", "function": a })),
                call_delta(json!({ "index": 1, "id": "same", "function": b })),
            ],
        ),
        (
            "null as index",
            vec![
                call_delta(json!({ "index": null, "id": "a", "function": a })),
                call_delta(json!({ "index": null, "id": "b", "function": b })),
            ],
        ),
        (
            "no index and no ids",
            vec![
                call_delta(json!({ "function": a })),
                call_delta(json!({ "function": b })),
            ],
        ),
        (
            "indexes from 1 with a gap",
            vec![
                call_delta(json!({ "index": 1, "id": "a", "function": a })),
                call_delta(json!({ "index": 3, "id": "b", "function": b })),
            ],
        ),
        (
            "indexes as texts",
            vec![
                call_delta(json!({ "index": "0", "id": "a", "function": a })),
                call_delta(json!({ "index": "1", "id": "b", "function": b })),
            ],
        ),
        (
            "arguments as objects",
            vec![
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file", json!({ "path": "a" })) }),
                ),
                call_delta(
                    json!({ "index": 0, "id": "b", "function": build_function("read_file", json!({ "path": "b" })) }),
                ),
            ],
        ),
        (
            "an empty object before the arguments",
            vec![
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file", json!({})) }),
                ),
                call_delta(json!({ "index": 0, "function": piece("{\"path\": \"a\"}") })),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
            ],
        ),
        (
            "arguments as JSON in JSON",
            vec![
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file", "\"{\\\"path\\\": \\\"a\\\"}\"") }),
                ),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
            ],
        ),
        (
            "the name with every piece",
            vec![
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file", "{\"pa") }),
                ),
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file", "th\": \"a\"}") }),
                ),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
            ],
        ),
        (
            "another id with every piece",
            vec![
                call_delta(json!({ "index": 0, "id": "x1", "function": build_function("read_file", "") })),
                call_delta(json!({ "index": 0, "id": "x2", "function": piece("{\"path\":") })),
                call_delta(json!({ "index": 0, "id": "x3", "function": piece(" \"a\"}") })),
                call_delta(json!({ "index": 1, "id": "x4", "function": b })),
            ],
        ),
        (
            "the name in pieces",
            vec![
                call_delta(json!({ "index": 0, "id": "a", "function": { "name": "read" } })),
                call_delta(json!({ "index": 0, "function": { "name": "_file" } })),
                call_delta(json!({ "index": 0, "function": piece("{\"path\": \"a\"}") })),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
            ],
        ),
        (
            "one name and one index, in pieces",
            vec![
                call_delta(json!({ "index": 0, "function": { "name": "read_file", "arguments": "" } })),
                call_delta(json!({ "index": 0, "function": piece("{\"path\": \"a\"}") })),
                call_delta(json!({ "index": 0, "function": { "name": "read_file", "arguments": "" } })),
                call_delta(json!({ "index": 0, "function": piece("{\"path\": \"b\"}") })),
            ],
        ),
        (
            "the whole call once more at its end",
            vec![
                call_delta(json!({ "index": 0, "id": "a", "function": a })),
                call_delta(json!({ "index": 0, "id": "a", "function": a })),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
                call_delta(
                    json!({ "index": 1, "id": "b", "function": { "name": "read_file", "arguments": "" } }),
                ),
            ],
        ),
        (
            "decorated names",
            vec![
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file<|channel|>commentary", "{\"path\": \"a\"}") }),
                ),
                call_delta(
                    json!({ "index": 1, "id": "b", "function": build_function("functions.read_file", "{\"path\": \"b\"}") }),
                ),
            ],
        ),
        (
            "arguments before the name",
            vec![
                call_delta(json!({ "index": 0, "id": "a", "function": piece("{\"path\": ") })),
                call_delta(json!({ "index": 0, "function": build_function("read_file", "\"a\"}") })),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
            ],
        ),
        (
            "the name after whole arguments",
            vec![
                call_delta(json!({ "index": 0, "id": "a", "function": piece("{\"path\": \"a\"}") })),
                call_delta(json!({ "index": 0, "function": { "name": "read_file" } })),
                call_delta(json!({ "index": 1, "id": "b", "function": b })),
            ],
        ),
        (
            "the pieces of two calls in turns",
            vec![
                call_delta(
                    json!({ "index": 0, "id": "a", "function": build_function("read_file", "{\"path\":") }),
                ),
                call_delta(
                    json!({ "index": 1, "id": "b", "function": build_function("read_file", "{\"path\":") }),
                ),
                call_delta(json!({ "index": 0, "function": piece("\"a\"}") })),
                call_delta(json!({ "index": 1, "function": piece("\"b\"}") })),
            ],
        ),
        (
            "a call that is not in a list",
            vec![
                json!({ "tool_calls": { "id": "a", "function": a } }),
                json!({ "function_call": b }),
            ],
        ),
    ]
}

#[test]
fn chat_calls_are_separated_for_every_server() {
    for (server, deltas) in two_calls() {
        for (reason, end) in [
            (json!("tool_calls"), DONE),
            (json!("stop"), ""),
            (json!(""), DONE),
            (json!("weird"), DONE),
        ] {
            let wire = chat_stream(&deltas, &reason, end);
            let reply = read_wire("openai", &wire).unwrap_or_else(|failure| panic!("{server}: {failure:?}"));
            assert_eq!(
                list_call_paths(&reply),
                build_expected_calls(&["a", "b"]),
                "{server}"
            );
            assert_eq!(reply.stop, ReplyStop::ToolUse, "{server} {reason}");
            assert_eq!(reply.usage.input_tokens, 7, "{server}");
        }
    }
}

/// Checks that a reply that is cut anywhere is the whole one, or is requested again.
fn assert_cuts_are_noticed(dialect: &str, server: &str, wire: &str) {
    let whole = read_wire(dialect, wire).unwrap();
    for cut in 0..wire.len() {
        match read_wire(dialect, &wire[..cut]) {
            // Token counts follow the end of the reply.
            Ok(reply) => assert_eq!(
                (&reply.blocks, reply.stop),
                (&whole.blocks, whole.stop),
                "{server} cut at {cut}"
            ),
            Err(failure) => {
                assert!(
                    crate::model::is_transient(failure.kind()),
                    "{server} cut at {cut}: {failure:?}"
                );
            }
        }
    }
}

#[test]
fn cut_server_stream_is_never_taken_as_complete() {
    for (server, deltas) in two_calls() {
        let wire = chat_stream(&deltas, &json!("tool_calls"), DONE);
        assert_cuts_are_noticed("openai", server, &wire);
    }
    for numbers in [[json!(0), json!(0)], [json!(null), json!(null)]] {
        let wire = message_stream(numbers, &json!("tool_use"), STOP);
        assert_cuts_are_noticed("anthropic", "equal numbers", &wire);
    }
}

#[test]
fn later_request_begins_with_former_bytes() {
    let settings = build_offline_settings("openai");
    let (mut transcript, mut before) = (build_opening_transcript(), String::new());
    for (server, deltas) in two_calls() {
        let body = super::bodies::build_request_body(&settings, &transcript);
        let shown = body["messages"].to_string();
        let shown = shown.strip_suffix(']').unwrap();
        assert!(shown.starts_with(&before), "before the reply of {server}");
        before = shown.to_owned();
        let reply = read_wire("openai", &chat_stream(&deltas, &json!("tool_calls"), DONE)).unwrap();
        append_turn(&mut transcript, reply, std::iter::repeat(ToolResult::ok("text")));
    }
}

#[test]
fn ambiguous_chat_calls_are_garbage() {
    let piece = |text: &str| json!({ "arguments": text });
    for (server, deltas) in [
        (
            "no name",
            vec![call_delta(
                json!({ "index": 0, "id": "a", "function": piece("{\"path\": \"a\"}") }),
            )],
        ),
        (
            "a name of decoration alone",
            vec![call_delta(
                json!({ "index": 0, "id": "a", "function": build_function("<|", "{\"path\": \"a\"}") }),
            )],
        ),
        (
            "two objects under one name",
            vec![
                call_delta(json!({ "index": 0, "id": "a", "function": whole_call("a") })),
                call_delta(json!({ "index": 0, "function": piece("{\"path\": \"b\"}") })),
            ],
        ),
    ] {
        let failure = read_wire("openai", &chat_stream(&deltas, &json!("tool_calls"), DONE)).unwrap_err();
        assert!(
            matches!(failure, AttemptFailure::Garbage(_)),
            "{server}: {failure:?}"
        );
    }
    let cut = [call_delta(
        json!({ "index": 0, "id": "a", "function": build_function("read_file", "{\"pa") }),
    )];
    let failure = read_wire("openai", &chat_stream(&cut, &json!("cancel"), DONE)).unwrap_err();
    assert!(matches!(failure, AttemptFailure::Garbage(_)), "{failure:?}");
}

#[test]
fn chat_reply_ends_by_its_content() {
    let text = [json!({ "content": "Hm." })];
    for reason in ["stop", "", "cancel", "UNKNOWN", "end_turn", "eos", "tool_call"] {
        let reply = read_wire("openai", &chat_stream(&text, &json!(reason), DONE)).unwrap();
        assert_eq!(
            (reply.stop, reply.text().as_str()),
            (ReplyStop::EndTurn, "Hm."),
            "{reason}"
        );
    }
    let reply = read_wire("openai", &chat_stream(&text, &json!("MAX_TOKENS"), DONE)).unwrap();
    assert_eq!(reply.stop, ReplyStop::MaxTokens);
    // A frame after the last one, with an empty reason.
    let trailing = chat_stream(&text, &json!("length"), "")
        + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"\"}]}\n\ndata: [DONE]\n\n";
    assert_eq!(read_wire("openai", &trailing).unwrap().stop, ReplyStop::MaxTokens);
    // No reason and no content.
    let failure = read_wire("openai", &chat_stream(&[], &Value::Null, DONE)).unwrap_err();
    assert!(matches!(failure, AttemptFailure::Garbage(_)), "{failure:?}");
    // Without reason and [DONE] the stream is incomplete.
    let failure = read_wire("openai", &chat_stream(&text, &Value::Null, "")).unwrap_err();
    assert!(matches!(failure, AttemptFailure::Transient { .. }), "{failure:?}");
    // The last event lacks its blank line.
    let bare = chat_stream(&text, &Value::Null, "data: [DONE]");
    assert_eq!(read_wire("openai", &bare).unwrap().text(), "Hm.");
}

#[test]
fn whole_message_after_its_deltas_counts_once() {
    let call = json!({ "id": "a", "type": "function", "function": whole_call("a") });
    let deltas = [
        json!({ "content": "Hm" }),
        json!({ "content": "." }),
        call_delta(json!({ "index": 0, "id": "a", "type": "function", "function": whole_call("a") })),
    ];
    let last = |message: Value| {
        let choice = json!({ "index": 0, "finish_reason": "tool_calls", "message": message });
        format!("data: {}\n\n", json!({ "model": "m", "choices": [choice] }))
    };
    let repeated = last(json!({ "role": "assistant", "content": "Hm.", "tool_calls": [call] }));
    let bare = last(json!({ "role": "assistant", "content": "" }));
    for message in [repeated, bare] {
        let wire = chat_stream(&deltas, &json!("tool_calls"), "") + &message + DONE;
        let reply = read_wire("openai", &wire).unwrap();
        assert_eq!(reply.text(), "Hm.", "{message}");
        assert_eq!(list_call_paths(&reply), build_expected_calls(&["a"]), "{message}");
    }
}

#[test]
fn reasoning_beside_completion_counts_as_output() {
    let xai = json!({
        "prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135,
        "completion_tokens_details": { "reasoning_tokens": 94 },
    });
    let gemini = json!({ "prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135 });
    let openai = json!({
        "prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 135,
        "completion_tokens_details": { "reasoning_tokens": 94 },
    });
    let without_total = json!({ "prompt_tokens": 32, "completion_tokens": 103 });
    for usage in [xai, gemini, openai, without_total] {
        let choice = json!({ "index": 0, "finish_reason": "stop", "message": { "content": "Hm." } });
        let message = json!({ "model": "m", "usage": usage, "choices": [choice] });
        let counted = read_wire("openai", &message.to_string()).unwrap().usage;
        assert_eq!(
            (counted.input_tokens, counted.output_tokens),
            (32, 103),
            "{message}"
        );
    }
}

#[test]
fn tokens_of_kimi_or_deepseek_are_counted() {
    let kimi = json!({
        "prompt_tokens": 32, "completion_tokens": 5, "total_tokens": 37, "cached_tokens": 30,
    });
    let deepseek = json!({
        "prompt_tokens": 32, "completion_tokens": 5, "total_tokens": 37,
        "prompt_cache_hit_tokens": 30, "prompt_cache_miss_tokens": 2,
    });
    let last = json!({ "index": 0, "delta": {}, "finish_reason": "stop" });
    let mut last_of_kimi = last.clone();
    last_of_kimi["usage"] = kimi.clone();
    for end in [
        json!({ "model": "m", "choices": [last_of_kimi] }),
        json!({ "model": "m", "choices": [last], "usage": kimi }),
        json!({ "model": "m", "choices": [last], "usage": deepseek }),
    ] {
        let text = json!({ "choices": [{ "index": 0, "delta": { "content": "Hm." } }] });
        let wire = format!("data: {text}\n\ndata: {end}\n\n{DONE}");
        let usage = read_wire("openai", &wire).unwrap().usage;
        let counted = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens);
        assert_eq!(counted, (32, 5, 30), "{end}");
    }
}

#[test]
fn unstreamed_chat_reply_is_read() {
    let message = json!({
        "model": "m", "usage": { "prompt_tokens": 7, "completion_tokens": 5 },
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": whole_call("a") },
                { "id": "b", "type": "function", "function": whole_call("b") },
            ],
        } }],
    });
    for wire in [format!("\n{message:#}"), format!("data: {message}\n\n{DONE}")] {
        let reply = read_wire("openai", &wire).unwrap();
        assert_eq!(list_call_paths(&reply), build_expected_calls(&["a", "b"]));
    }
    let failure = read_wire(
        "openai",
        r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#,
    )
    .unwrap_err();
    assert_eq!(failure.kind(), domain::ModelFault::ContextTooLong);
    for page in ["<html><body>Sign in", "  \n<!DOCTYPE html>"] {
        let failure = read_wire("openai", page).unwrap_err();
        assert!(crate::model::is_transient(failure.kind()), "{failure:?}");
    }
}

#[test]
fn unstreamed_reply_ends_by_its_content() {
    let chat = |message: Value, reason: Option<Value>| {
        let mut choice = json!({ "index": 0, "message": message });
        if let Some(reason) = reason {
            choice["finish_reason"] = reason;
        }
        json!({ "model": "m", "choices": [choice] }).to_string()
    };
    let reasons = [None, Some(Value::Null), Some(json!("")), Some(json!("weird"))];
    for reason in reasons {
        let calls = json!([{ "id": "a", "type": "function", "function": whole_call("a") }]);
        let reply = read_wire("openai", &chat(json!({ "tool_calls": calls }), reason.clone())).unwrap();
        assert_eq!(reply.stop, ReplyStop::ToolUse, "{reason:?}");
        assert_eq!(list_call_paths(&reply), build_expected_calls(&["a"]));
        let reply = read_wire("openai", &chat(json!({ "content": "Hm." }), reason.clone())).unwrap();
        assert_eq!(
            (reply.stop, reply.text().as_str()),
            (ReplyStop::EndTurn, "Hm."),
            "{reason:?}"
        );
        let message = json!({ "type": "message", "content": [{ "type": "text", "text": "Hm." }], "stop_reason": reason });
        let reply = read_wire("anthropic", &message.to_string()).unwrap();
        assert_eq!((reply.stop, reply.text().as_str()), (ReplyStop::EndTurn, "Hm."));
        let call = build_function("read_file", "{\"pa");
        let calls = json!([{ "id": "a", "type": "function", "function": call }]);
        for message in [json!({ "tool_calls": calls }), json!({ "content": "" })] {
            let failure = read_wire("openai", &chat(message, reason.clone())).unwrap_err();
            assert!(
                matches!(failure, AttemptFailure::Garbage(_)),
                "{reason:?}: {failure:?}"
            );
        }
    }
    for foreign in [
        "{}",
        r#"{"message":"hello"}"#,
        "[]",
        r#"[{"choices":[]},{"choices":[]}]"#,
    ] {
        for dialect in DIALECTS {
            let failure = read_wire(dialect, foreign).unwrap_err();
            assert!(
                matches!(failure, AttemptFailure::Garbage(_)),
                "{foreign}: {failure:?}"
            );
        }
    }
}

#[test]
fn error_in_list_is_read_like_error() {
    let error = r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input exceeds the context window."}}]"#;
    for dialect in DIALECTS {
        for wire in [error.to_owned(), format!("data: {error}\n\n")] {
            let failure = read_wire(dialect, &wire).unwrap_err();
            assert_eq!(
                failure.kind(),
                domain::ModelFault::ContextTooLong,
                "{dialect} {wire}"
            );
        }
    }
}

#[test]
fn split_character_is_joined_over_events() {
    let wire = r#"data: {"choices":[{"index":0,"delta":{"content":"a \ud83d"}}]}

data: {"choices":[{"index":0,"delta":{"content":"\ude00 b \ud83d"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x\ud83d","function":{"name":"read_file","arguments":"{\"path\": \"\ud83d"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00 \\ud83d\"}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;
    let reply = read_wire("openai", wire).unwrap();
    assert_eq!(reply.text(), "a \u{1f600} b \u{fffd}");
    assert_eq!(
        list_call_paths(&reply),
        build_expected_calls(&["\u{1f600} \u{fffd}"])
    );
    let wire = r#"data: {"type":"message_start","message":{"model":"m","usage":null}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

"#;
    assert_eq!(read_wire("anthropic", wire).unwrap().text(), "\u{1f600}");
    // Invalid UTF-8 in each event alone.
    let mut bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\n".to_vec();
    bytes.extend(
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\x98\x80\"},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let reply = read_offering(&TOOLS, "openai", vec![Bytes::from(bytes)]).unwrap();
    assert_eq!(reply.text(), "\u{1f600}");
}

/// Returns events of Anthropic's API with these numbers of the two calls' blocks.
fn message_stream(numbers: [Value; 2], reason: &Value, end: &str) -> String {
    let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let mut wire = event(
        json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 7 } } }),
    );
    for (number, path) in numbers.iter().zip(["a", "b"]) {
        let block = json!({ "type": "tool_use", "id": "same", "name": "functions.read_file", "input": {} });
        wire += &event(json!({ "type": "content_block_start", "index": number, "content_block": block }));
        for piece in ["", "{\"path\": ", &format!("\"{path}\"}}")] {
            let delta = json!({ "type": "input_json_delta", "partial_json": piece });
            wire += &event(json!({ "type": "content_block_delta", "index": number, "delta": delta }));
        }
        wire += &event(json!({ "type": "content_block_stop", "index": number }));
    }
    let delta = json!({ "stop_reason": reason });
    wire += &event(
        json!({ "type": "message_delta", "delta": delta, "usage": { "input_tokens": 0, "output_tokens": 5 } }),
    );
    wire + end
}

const STOP: &str = "data: {\"type\":\"message_stop\"}\n\n";

#[test]
fn message_blocks_are_separated_for_any_numbers() {
    let numbers = [
        [json!(0), json!(1)],
        [json!(0), json!(2)],
        [json!(1), json!(2)],
        [json!(0), json!(0)],
        [json!(null), json!(null)],
        [json!("0"), json!("1")],
    ];
    for numbers in numbers {
        for (reason, end) in [
            (json!("tool_use"), STOP),
            (json!("end_turn"), ""),
            (json!("weird"), STOP),
            (json!(""), STOP),
        ] {
            let wire = message_stream(numbers.clone(), &reason, end);
            let reply = read_wire("anthropic", &wire)
                .unwrap_or_else(|failure| panic!("{numbers:?} {reason}: {failure:?}"));
            assert_eq!(
                list_call_paths(&reply),
                build_expected_calls(&["a", "b"]),
                "{numbers:?}"
            );
            assert_eq!(reply.stop, ReplyStop::ToolUse);
            assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (7, 5));
        }
    }
    let failure = read_wire(
        "anthropic",
        &message_stream([json!(0), json!(1)], &Value::Null, ""),
    )
    .unwrap_err();
    assert!(matches!(failure, AttemptFailure::Transient { .. }), "{failure:?}");
}

#[test]
fn unstreamed_message_reply_is_read() {
    let message = json!({
        "type": "message", "model": "m", "stop_reason": "tool_use", "usage": { "input_tokens": 7, "output_tokens": 5 },
        "content": [
            { "type": "text", "text": "Hm." },
            { "type": "tool_use", "id": "a", "name": "read_file", "input": { "path": "a" } },
            { "type": "tool_use", "id": "a", "name": "read_file", "input": "{\"path\": \"b\"}" },
        ],
    });
    let reply = read_wire("anthropic", &message.to_string()).unwrap();
    assert_eq!(
        (reply.text().as_str(), list_call_paths(&reply)),
        ("Hm.", build_expected_calls(&["a", "b"]))
    );
}

#[test]
fn bare_patch_becomes_argument_of_its_tool() {
    let read = |dialect: &str, name: &str, arguments: &str| {
        let wire = match dialect {
            "openai-responses" => {
                let call =
                    json!({ "type": "function_call", "call_id": "a", "name": name, "arguments": arguments });
                json!({ "object": "response", "status": "completed", "output": [call] }).to_string()
            }
            "openai" => {
                let (begin, end) = arguments.split_at(arguments.len() / 2);
                let call = json!({ "index": 0, "id": "a", "function": build_function(name, begin) });
                let more = json!({ "index": 0, "function": { "arguments": end } });
                chat_stream(&[call_delta(call), call_delta(more)], &json!("tool_calls"), DONE)
            }
            _ => json!({
                "type": "message", "stop_reason": "tool_use",
                "content": [{ "type": "tool_use", "id": "a", "name": name, "input": arguments }],
            })
            .to_string(),
        };
        let pieces = vec![Bytes::from(wire)];
        let reply = read_offering(&["apply_patch", "read_file"], dialect, pieces).unwrap();
        reply.tool_calls().next().unwrap().input.clone()
    };
    let envelope =
        "*** Begin Patch\n*** Update File: a.rs\n@@\n-fn a() {}\n+fn a() { \"b\" }\n*** End Patch\n";
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\n";
    for dialect in DIALECTS {
        for patch in [
            envelope.to_owned(),
            format!("```\n{envelope}```\n"),
            format!("apply_patch <<'EOF'\n{envelope}EOF\n"),
            "*** Update File: a.rs\n@@\n-a\n+b\n".to_owned(),
            diff.to_owned(),
            format!("diff --git a/a.rs b/a.rs\nindex 1..2 100644\n{diff}"),
            "diff --git a/a b/b\nrename from a\nrename to b\n".to_owned(),
        ] {
            let wrapped = json!({ "patch": patch });
            assert_eq!(read(dialect, "apply_patch", &patch), wrapped, "{dialect} {patch}");
            let quoted = json!(patch).to_string();
            assert_eq!(
                read(dialect, "functions.apply_patch", &quoted),
                wrapped,
                "{dialect}"
            );
            assert_eq!(read(dialect, "apply_patch", &wrapped.to_string()), wrapped);
            assert_eq!(read(dialect, "read_file", &patch), json!(patch), "{dialect}");
        }
        for other in ["hello", "{\"patch\": \"--- a\n+++ b", "--- a\nwords\n+++ b\n"] {
            assert_eq!(read(dialect, "apply_patch", other), json!(other), "{dialect}");
        }
    }
}

/// Sets a field of an object to a content, if there is one.
fn set_field(mut object: Value, field: &str, content: Option<&Value>) -> Value {
    if let Some(content) = content {
        object[field] = content.clone();
    }
    object
}

fn render_data(events: &[Value]) -> Bytes {
    let wire: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    wire.into()
}

/// Returns replies of each kind of server with one call of `finish`, which has these arguments or none.
fn list_wires_of_call(dialect: &str, arguments: Option<&Value>) -> Vec<Bytes> {
    match dialect {
        "openai" => {
            let function = set_field(json!({ "name": "finish" }), "arguments", arguments);
            let call = json!({ "index": 0, "id": "a", "type": "function", "function": function });
            let message = json!({ "content": null, "tool_calls": [call] });
            let choice = json!({ "index": 0, "finish_reason": "tool_calls", "message": message });
            let deltas = [call_delta(call)];
            vec![
                chat_stream(&deltas, &json!("tool_calls"), DONE).into(),
                chat_stream(&deltas, &Value::Null, DONE).into(),
                json!({ "model": "m", "choices": [choice] }).to_string().into(),
            ]
        }
        "openai-responses" => {
            let call = json!({ "type": "function_call", "id": "fc_a", "call_id": "a", "name": "finish" });
            let item = set_field(call, "arguments", arguments);
            let end = json!({
                "type": "response.function_call_arguments.done", "item_id": "fc_a", "output_index": 0,
                "arguments": item["arguments"],
            });
            let response =
                json!({ "object": "response", "status": "completed", "model": "m", "output": [item] });
            vec![
                render_data(&[
                    json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
                    end,
                    json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
                    json!({ "type": "response.completed", "response": response }),
                ]),
                response.to_string().into(),
            ]
        }
        _ => {
            let call = json!({ "type": "tool_use", "id": "a", "name": "finish" });
            let block = set_field(call, "input", arguments);
            let piece = arguments.and_then(Value::as_str).unwrap_or_default();
            let delta = json!({ "type": "input_json_delta", "partial_json": piece });
            let events = [
                json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 7 } } }),
                json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
                json!({ "type": "message_stop" }),
            ];
            if dialect == "bedrock" {
                let frames = events.iter().map(|event| encode_chunk(&event.to_string()));
                return vec![frames.collect::<Vec<_>>().concat().into()];
            }
            let message =
                json!({ "type": "message", "model": "m", "stop_reason": "tool_use", "content": [block] });
            vec![render_data(&events), message.to_string().into()]
        }
    }
}

#[test]
fn absent_arguments_become_empty_object() {
    let absent = [
        json!(null),
        json!(""),
        json!(" \n"),
        json!("null"),
        json!("\"\""),
        json!({}),
        json!("{}"),
    ];
    let given: Vec<Option<&Value>> = absent.iter().map(Some).chain([None]).collect();
    for dialect in ["anthropic", "openai", "openai-responses", "bedrock"] {
        let sent_back = if dialect.starts_with("openai") {
            r#""arguments":"{}""#
        } else {
            r#""input":{}"#
        };
        for arguments in &given {
            for wire in list_wires_of_call(dialect, *arguments) {
                let reply = read_offering(&TOOLS, dialect, vec![wire])
                    .unwrap_or_else(|failure| panic!("{dialect} {arguments:?}: {failure:?}"));
                assert_eq!(reply.stop, ReplyStop::ToolUse, "{dialect} {arguments:?}");
                let inputs: Vec<&Value> = reply.tool_calls().map(|call| &call.input).collect();
                assert_eq!(inputs, [&json!({})], "{dialect} {arguments:?}");
                let mut transcript = build_opening_transcript();
                append_turn(&mut transcript, reply, [ToolResult::ok("text")]);
                let settings = build_offline_settings(dialect);
                let sent = super::bodies::build_request_body(&settings, &transcript).to_string();
                assert!(sent.contains(sent_back), "{dialect} {arguments:?}: {sent}");
            }
        }
    }
}

#[test]
fn wire_ids_follow_call_positions() {
    let call = |id: &str| {
        ReplyBlock::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "bad name".to_owned(),
            input: json!({}),
        })
    };
    let mut transcript = build_opening_transcript();
    for ids in [["same", "same"], ["same", ""], ["a.b", "a:b"]] {
        let results = ids
            .iter()
            .map(|id| ((*id).to_owned(), ToolResult::ok("text")))
            .collect();
        transcript.messages.extend([
            TranscriptMessage::Assistant(ids.iter().map(|id| call(id)).collect()),
            TranscriptMessage::ToolResults(results),
        ]);
    }
    for dialect in DIALECTS {
        let sent =
            super::bodies::build_request_body(&build_offline_settings(dialect), &transcript).to_string();
        for id in [
            "c00001000",
            "c00001001",
            "c00002000",
            "c00002001",
            "c00003000",
            "c00003001",
        ] {
            assert_eq!(sent.matches(id).count(), 2, "{dialect} {id}: {sent}");
        }
        assert!(
            !sent.contains("same") && sent.contains("bad_name"),
            "{dialect}: {sent}"
        );
    }
}

#[test]
fn original_arguments_return_only_to_their_model() {
    let call = json!({
        "index": 0, "id": "a", "function": build_function("read_file", "{ \"path\": \"a\",\n \"b\": 1 }"),
        "extra_content": { "google": { "thought_signature": "s" } },
    });
    let wire = chat_stream(&[call_delta(call)], &json!("tool_calls"), DONE);
    let reply = stamp_reply(read_wire("openai", &wire).unwrap(), "scripted");
    let mut transcript = build_opening_transcript();
    transcript
        .messages
        .push(TranscriptMessage::Assistant(reply.blocks));
    let mut same = build_offline_settings("openai");
    let sent = |settings: &ModelSettings| {
        super::bodies::build_request_body(settings, &transcript)["messages"][2]["tool_calls"][0].clone()
    };
    assert_eq!(
        sent(&same)["function"]["arguments"],
        "{ \"path\": \"a\",\n \"b\": 1 }"
    );
    assert_eq!(sent(&same)["extra_content"]["google"]["thought_signature"], "s");
    same.name = "another".to_owned();
    assert_eq!(sent(&same)["function"]["arguments"], r#"{"b":1,"path":"a"}"#);
    assert!(sent(&same)["extra_content"].is_null());
}

/// Generates a call with every deviation that servers are known for.
fn any_fragment() -> impl Strategy<Value = Value> {
    let index = prop::sample::select(vec![
        json!(0),
        json!(1),
        json!(7),
        json!(-1),
        Value::Null,
        json!("0"),
        json!({}),
    ]);
    let id = prop::sample::select(vec![json!("a"), json!("b"), json!(""), Value::Null, json!(3)]);
    let names = [
        "read_file",
        "read",
        "_file",
        "finish",
        "",
        "functions.read_file",
        "<|x",
    ];
    let name = prop::sample::select(names.to_vec());
    let arguments = prop::sample::select(vec![
        json!("{\"path\": \"a\"}"),
        json!("{\"pa"),
        json!("th\": \"a\"}"),
        json!(""),
        Value::Null,
        json!({ "path": "a" }),
        json!({}),
        json!([1]),
        json!("\\ud83d"),
    ]);
    (index, id, name, arguments).prop_map(|(index, id, name, arguments)| {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_stream_yields_reusable_reply_or_failure(
        calls in prop::collection::vec(any_fragment(), 0..8),
        reason in prop::sample::select(vec!["", "stop", "weird", "length", "error"]),
        is_done in any::<bool>(),
    ) {
        let deltas: Vec<Value> = calls.into_iter().map(call_delta).collect();
        let wire = chat_stream(&deltas, &json!(reason), if is_done { DONE } else { "" });
        if let Ok(reply) = read_wire("openai", &wire) {
            for call in reply.tool_calls() {
                prop_assert!(!call.name.is_empty());
                prop_assert!(!call.id.is_empty());
            }
        }
    }

    #[test]
    fn server_streams_read_alike_in_any_pieces(ends in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        for (server, deltas) in two_calls() {
            let wire = chat_stream(&deltas, &json!("tool_calls"), DONE);
            let reply = read_offering(&TOOLS, "openai", super::streams::split_bytes(wire.as_bytes(), &ends)).unwrap();
            prop_assert_eq!(list_call_paths(&reply), build_expected_calls(&["a", "b"]), "{}", server);
        }
        let wire = message_stream([json!(0), json!(0)], &json!("weird"), STOP);
        let reply = read_offering(&TOOLS, "anthropic", super::streams::split_bytes(wire.as_bytes(), &ends)).unwrap();
        prop_assert_eq!(list_call_paths(&reply), build_expected_calls(&["a", "b"]));
    }
}
