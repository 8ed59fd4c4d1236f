//! Requests and streams of Responses: what the service sends, and what compatible servers make of it.

use bytes::Bytes;
use domain::{ModelFault, ModelReply, ReplyBlock, ReplyStop, TokenUsage, ToolCall};
use proptest::prelude::*;
use serde_json::Value;

use super::bodies::{build_image_message, build_request_body};
use super::streams::{read_offering, split_bytes};
use super::*;
use crate::model::failure::AttemptFailure;
use crate::transcript::OutputSchema;

const DIALECT: &str = "openai-responses";
const TOOLS: [&str; 2] = ["read_file", "finish"];

fn read_wire(wire: &str) -> Result<ModelReply, AttemptFailure> {
    read_offering(&TOOLS, DIALECT, vec![Bytes::copy_from_slice(wire.as_bytes())])
}

fn render_events(events: &[Value]) -> String {
    let render = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(render).collect()
}

fn completed(output: &[Value]) -> Value {
    let usage = json!({
        "input_tokens": 7, "input_tokens_details": { "cached_tokens": 3 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 2 },
    });
    let response = json!({ "object": "response", "status": "completed", "model": "m", "output": output, "usage": usage });
    json!({ "type": "response.completed", "response": response })
}

fn call_item(id: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "read_file",
        "arguments": arguments, "status": "completed",
    })
}

fn arguments_of(path: &str) -> String {
    format!("{{\"path\": \"{path}\"}}")
}

fn text_item(text: &str) -> Value {
    let part = json!({ "type": "output_text", "text": text, "annotations": [] });
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part] })
}

fn started(item: &Value, index: impl Into<Value>) -> Value {
    let (mut start, index): (Value, Value) = (item.clone(), index.into());
    start["arguments"] = json!("");
    json!({ "type": "response.output_item.added", "output_index": index, "item": start })
}

fn done(item: &Value, index: impl Into<Value>) -> Value {
    let index: Value = index.into();
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn arguments_delta(id: &str, index: impl Into<Value>, delta: &str) -> Value {
    let index: Value = index.into();
    json!({
        "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": delta,
    })
}

fn list_paths(reply: &ModelReply) -> Vec<String> {
    let path = |call: &ToolCall| call.input["path"].as_str().unwrap_or_default().to_owned();
    reply.tool_calls().map(path).collect()
}

/// Returns the calls of `a` and `b` in the form of each kind of server.
fn two_calls() -> Vec<(&'static str, Vec<Value>)> {
    let (a, b) = (
        call_item("a", &arguments_of("a")),
        call_item("b", &arguments_of("b")),
    );
    let both = [a.clone(), b.clone()];
    let mut bare = [a.clone(), b.clone()];
    for item in &mut bare {
        item.as_object_mut().unwrap().retain(|key, _| key != "id");
    }
    let mut object = a.clone();
    object["arguments"] = json!({ "path": "a" });
    let mut decorated = a.clone();
    decorated["name"] = json!("functions.read_file<|channel|>commentary");
    vec![
        (
            "the pieces of two calls in turns",
            vec![
                started(&a, 0),
                started(&b, 1),
                arguments_delta("fc_a", 0, "{\"path\":"),
                arguments_delta("fc_b", 1, "{\"path\": "),
                arguments_delta("fc_a", 0, " \"a\"}"),
                arguments_delta("fc_b", 1, "\"b\"}"),
                done(&a, 0),
                done(&b, 1),
                completed(&both),
            ],
        ),
        (
            "one index for both",
            vec![
                started(&a, 0),
                arguments_delta("fc_a", 0, &arguments_of("a")),
                done(&a, 0),
                started(&b, 0),
                arguments_delta("fc_b", 0, &arguments_of("b")),
                done(&b, 0),
                completed(&both),
            ],
        ),
        (
            "no index and no ids",
            vec![
                started(&bare[0], Value::Null),
                arguments_delta("", Value::Null, &arguments_of("a")),
                done(&bare[0], Value::Null),
                started(&bare[1], Value::Null),
                arguments_delta("", Value::Null, &arguments_of("b")),
                done(&bare[1], Value::Null),
                completed(&[]),
            ],
        ),
        (
            "another id with every piece",
            vec![
                started(&a, 0),
                arguments_delta("x1", 0, "{\"path\":"),
                arguments_delta("x2", 0, " \"a\"}"),
                started(&b, 1),
                arguments_delta("x3", 1, &arguments_of("b")),
                completed(&[]),
            ],
        ),
        (
            "whole items alone",
            vec![done(&a, 0), done(&b, 1), completed(&[])],
        ),
        ("the last event alone", vec![completed(&both)]),
        (
            "every item once more",
            vec![
                started(&a, 0),
                started(&a, 0),
                done(&a, 0),
                done(&a, 0),
                done(&b, 1),
                completed(&both),
            ],
        ),
        (
            "arguments as an object",
            vec![done(&object, 0), done(&b, 1), completed(&[])],
        ),
        (
            "a decorated name",
            vec![done(&decorated, 0), done(&b, 1), completed(&[])],
        ),
        (
            "the arguments once more at their end",
            vec![
                started(&a, 0),
                arguments_delta("fc_a", 0, &arguments_of("a")),
                json!({
                    "type": "response.function_call_arguments.done", "item_id": "fc_a", "output_index": 0,
                    "arguments": arguments_of("a"),
                }),
                started(&b, 1),
                arguments_delta("fc_b", 1, &arguments_of("b")),
                completed(&both),
            ],
        ),
    ]
}

#[test]
fn response_calls_are_separated_for_every_server() {
    for (server, events) in two_calls() {
        let wire = render_events(&events);
        for wire in [
            wire.clone(),
            wire.clone() + "data: [DONE]\n\n",
            wire.replace('\n', "\r\n"),
        ] {
            let reply = read_wire(&wire).unwrap_or_else(|failure| panic!("{server}: {failure:?}"));
            assert_eq!(list_paths(&reply), ["a", "b"], "{server}");
            assert_eq!(reply.stop, ReplyStop::ToolUse, "{server}");
            let wanted = TokenUsage {
                input_tokens: 7,
                output_tokens: 5,
                cache_read_tokens: 3,
                ..TokenUsage::default()
            };
            assert_eq!(reply.usage, wanted, "{server}");
        }
    }
}

#[test]
fn response_ends_by_its_status() {
    let ended = |status: &str, reason: Value, output: &[Value]| {
        let kind = format!("response.{status}");
        let details = json!({ "reason": reason });
        let response = json!({ "object": "response", "status": status, "incomplete_details": details, "output": output });
        read_wire(&render_events(&[json!({ "type": kind, "response": response })]))
    };
    let text = [text_item("Hm.")];
    let cut = [call_item("a", "{\"pa")];
    for (status, reason, output, stop) in [
        ("completed", Value::Null, &text, ReplyStop::EndTurn),
        (
            "incomplete",
            json!("max_output_tokens"),
            &text,
            ReplyStop::MaxTokens,
        ),
        (
            "incomplete",
            json!("max_output_tokens"),
            &cut,
            ReplyStop::MaxTokens,
        ),
        ("incomplete", Value::Null, &text, ReplyStop::MaxTokens),
        ("incomplete", json!("content_filter"), &text, ReplyStop::Refusal),
    ] {
        let reply = ended(status, reason.clone(), output).unwrap();
        assert_eq!(reply.stop, stop, "{status} {reason}");
    }
    for status in ["failed", "cancelled"] {
        let failure = ended(status, Value::Null, &text).unwrap_err();
        assert_eq!(failure.kind(), ModelFault::Unavailable, "{status}");
    }
    // A reply that the token limit stopped in its reasoning has nothing else.
    let empty = ended("incomplete", json!("max_output_tokens"), &[]).unwrap();
    assert_eq!((empty.stop, empty.blocks.len()), (ReplyStop::MaxTokens, 0));
    let unfinished = render_events(&[started(&cut[0], 0), arguments_delta("fc_a", 0, "{\"pa")]);
    assert_eq!(
        read_wire(&unfinished).unwrap_err().kind(),
        ModelFault::Unavailable
    );
    let unknown = read_wire(&(unfinished + "data: [DONE]\n\n")).unwrap_err();
    assert!(matches!(unknown, AttemptFailure::Garbage(_)), "{unknown:?}");
}

#[test]
fn refusal_of_response_keeps_its_words() {
    let part = json!({ "type": "refusal", "refusal": "I cannot help." });
    let item = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [part] });
    let mut start = item.clone();
    start["content"] = json!([]);
    let delta = json!({ "type": "response.refusal.delta", "item_id": "msg_1", "output_index": 0, "delta": "I cannot help." });
    for events in [
        vec![completed(std::slice::from_ref(&item))],
        vec![started(&start, 0), delta, completed(&[])],
    ] {
        let reply = read_wire(&render_events(&events)).unwrap();
        assert_eq!(
            (reply.stop, reply.text().as_str()),
            (ReplyStop::Refusal, "I cannot help.")
        );
    }
}

#[test]
fn errors_in_response_stream_are_classified() {
    let failed = |error: Value| {
        let response = json!({ "object": "response", "status": "failed", "error": error, "output": [] });
        json!({ "type": "response.failed", "response": response })
    };
    let error = |code: &str, message: &str| json!({ "code": code, "message": message });
    let bare = |code: &str, message: &str| json!({ "type": "error", "code": code, "message": message });
    let long = "Your input exceeds the context window of this model.";
    for (event, kind) in [
        (failed(error("server_error", "Oops")), ModelFault::Unavailable),
        (
            failed(error("context_length_exceeded", long)),
            ModelFault::ContextTooLong,
        ),
        (failed(error("insufficient_quota", "No.")), ModelFault::NotOffered),
        (failed(error("invalid_prompt", "Flagged.")), ModelFault::Refused),
        (failed(error("image_too_large", "No.")), ModelFault::Refused),
        (failed(Value::Null), ModelFault::Unavailable),
        (
            bare("rate_limit_exceeded", "Please try again in 2s."),
            ModelFault::Unavailable,
        ),
        (
            json!({ "type": "error", "error": error("invalid_request_error", long) }),
            ModelFault::ContextTooLong,
        ),
        (
            json!({ "error": { "message": long } }),
            ModelFault::ContextTooLong,
        ),
    ] {
        let failure = read_wire(&render_events(std::slice::from_ref(&event))).unwrap_err();
        assert_eq!(failure.kind(), kind, "{event}: {failure:?}");
    }
}

/// Returns the transcript after a reply of the scripted model, and its result.
fn append_reply(mut transcript: ModelTranscript, reply: ModelReply) -> ModelTranscript {
    let results = std::iter::repeat(ToolResult::ok("text"));
    append_turn(&mut transcript, stamp_reply(reply, "scripted"), results);
    transcript
}

fn list_types(body: &Value) -> Vec<&str> {
    let input = body["input"].as_array().unwrap().iter();
    input.map(|item| item["type"].as_str().unwrap()).collect()
}

#[test]
fn reasoning_returns_only_where_it_is_readable() {
    let reasoning = |more: Value| {
        let mut item = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "status": null });
        item.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        item
    };
    let call = call_item("a", &arguments_of("a"));
    let settings = build_offline_settings(DIALECT);
    let next = |output: &[Value], settings: &ModelSettings| {
        let reply = read_wire(&render_events(&[completed(output)])).unwrap();
        build_request_body(settings, &append_reply(build_opening_transcript(), reply))
    };
    let with = ["message", "reasoning", "function_call", "function_call_output"];
    let without = ["message", "function_call", "function_call_output"];
    let encrypted = reasoning(json!({ "encrypted_content": "e", "content": null }));
    let body = next(&[encrypted.clone(), call.clone()], &settings);
    assert_eq!(list_types(&body), with);
    let wanted = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" });
    assert_eq!(body["input"][1], wanted);
    let open = reasoning(json!({ "content": [{ "type": "reasoning_text", "text": "Hm." }] }));
    assert_eq!(list_types(&next(&[open, call.clone()], &settings)), with);
    let stored = reasoning(json!({}));
    assert_eq!(list_types(&next(&[stored, call.clone()], &settings)), without);
    // Reasoning without an item after it, as after a limit of tokens.
    assert_eq!(
        list_types(&next(&[call.clone(), encrypted.clone()], &settings)),
        without
    );
    let mut other = settings.clone();
    other.name = "another".to_owned();
    assert_eq!(list_types(&next(&[encrypted, call], &other)), without);
}

#[test]
fn response_request_is_stateless_and_complete() {
    let mut settings = build_offline_settings(DIALECT);
    let output = OutputSchema {
        name: "verdict".to_owned(),
        schema: json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] }),
    };
    let transcript = ModelTranscript {
        output: Some(output),
        ..build_opening_transcript()
    };
    let body = build_request_body(&settings, &transcript);
    assert_eq!(body["store"], false);
    assert!(body.get("previous_response_id").is_none());
    assert_eq!(body["tools"][0]["strict"], false);
    assert_eq!(body["text"]["format"]["strict"], true);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert!(body.get("prompt_cache_key").is_none());
    settings.name = "gpt-4.1".to_owned();
    assert!(
        build_request_body(&settings, &transcript)
            .get("include")
            .is_none()
    );
    settings.base_url = None;
    assert!(build_request_body(&settings, &transcript)["prompt_cache_key"].is_string());
}

#[tokio::test]
async fn responses_reasoning_returns_to_stand_in() {
    let script = vec![
        build_read_step().thinking("Where is the cart?"),
        build_read_step().thinking("And the rest?"),
        ScriptStep::reply("Done."),
    ];
    let model = start_model(script).await;
    let settings = build_model_settings(DIALECT, &model.url());
    let mut transcript = build_opening_transcript();
    let mut before: Vec<Value> = Vec::new();
    for _ in 0..2 {
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        transcript = append_reply(transcript, reply);
    }
    let reply = ask_with_settings(&settings, &transcript).await.unwrap();
    assert_eq!(reply.text(), "Done.");
    for call in model.calls() {
        let input = call.request["input"].as_array().unwrap().clone();
        assert_eq!(input[..before.len()], before, "a later request keeps the former");
        before = input;
    }
    assert_eq!(model.violations(), Vec::<String>::new());
    let kinds = before.iter().filter(|item| item["type"] == "reasoning").count();
    assert_eq!(kinds, 2);
}

#[tokio::test]
async fn refused_reasoning_is_omitted_on_retry() {
    let model = start_model(vec![
        build_read_step().thinking("Hm."),
        ScriptStep::reply("Done."),
    ])
    .await;
    let settings = build_model_settings(DIALECT, &model.url());
    let mut reply = ask_with_settings(&settings, &build_opening_transcript())
        .await
        .unwrap();
    let reasoning = reply.blocks.iter_mut().find_map(|block| match block {
        ReplyBlock::Opaque { value, .. } if value["type"] == "reasoning" => Some(value),
        ReplyBlock::Opaque { .. } | ReplyBlock::Text { .. } | ReplyBlock::ToolCall(_) => None,
    });
    reasoning.unwrap()["encrypted_content"] = json!("of another conversation");
    let transcript = append_reply(build_opening_transcript(), reply);
    assert_eq!(
        ask_with_settings(&settings, &transcript).await.unwrap().text(),
        "Done."
    );
    assert_eq!(model.violations().len(), 1, "{:?}", model.violations());
    let last = model.calls().pop().unwrap().request;
    assert!(!list_types(&last).contains(&"reasoning") && last.get("include").is_none());
}

#[tokio::test]
async fn readable_image_reaches_responses_service() {
    let model = start_model(vec![
        ScriptStep::reply("Done.").expecting("[image/png of 3 bytes]"),
    ])
    .await;
    let mut settings = build_model_settings(DIALECT, &model.url());
    settings.images = Some(true);
    let mut transcript = build_opening_transcript();
    transcript.messages.push(build_image_message(Some("AAAA")));
    let reply = ask_with_settings(&settings, &transcript).await.unwrap();
    assert_eq!(reply.text(), "Done.");
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(*model.answered().borrow(), 1);
}

#[tokio::test]
async fn refused_image_is_omitted_from_responses_request() {
    let failed = concat!(
        "event: response.failed\n",
        r#"data: {"type":"response.failed","response":{"object":"response","status":"failed","output":[],"#,
        r#""error":{"code":"invalid_base64_image","message":"It is not valid."}}}"#,
        "\n\n",
    );
    // The stand-in refuses the first content at once, and the second one in the middle of its stream.
    for (data, fault) in [
        ("not base64", None),
        (
            "AAAA",
            Some(ServiceFault::new("/v1/", 1, 200).page("text/event-stream", failed)),
        ),
    ] {
        let model = start_model(vec![ScriptStep::reply("Done.")]).await;
        let mut settings = build_model_settings(DIALECT, &model.url());
        settings.images = Some(true);
        let mut transcript = build_opening_transcript();
        transcript.messages.push(build_image_message(Some(data)));
        if let Some(fault) = fault {
            model.fail_next(fault);
        }
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        assert_eq!(reply.text(), "Done.");
        assert_eq!(*model.answered().borrow(), 2, "with the image, then without");
        let request = model.calls().pop().unwrap().request.to_string();
        assert!(
            request.contains("(image `x.png`, not shown: the dialog)"),
            "{request}"
        );
        assert!(!request.contains("input_image"), "{request}");
    }
}

/// Generates an event with every deviation that servers may have.
fn any_event() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "response.unknown",
        "",
    ]);
    let index = prop::sample::select(vec![json!(0), json!(1), json!(-1), Value::Null, json!("1")]);
    let id = prop::sample::select(vec![
        json!("fc_a"),
        json!("msg_1"),
        json!(""),
        Value::Null,
        json!(3),
    ]);
    let text = prop::sample::select(vec![
        json!("{\"path\": \"a\"}"),
        json!("{\"pa"),
        json!("\\ud83d"),
        Value::Null,
        json!({ "path": "a" }),
    ]);
    let item = prop::sample::select(vec![
        call_item("a", "{\"path\": \"a\"}"),
        text_item("Hm."),
        json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "e" }),
        json!({ "type": "function_call" }),
        json!({ "type": "new_kind", "content": 3 }),
        json!(3),
        Value::Null,
    ]);
    (kind, index, id, text, item).prop_map(|(kind, index, id, text, item)| {
        json!({
            "type": kind, "output_index": index, "item_id": id, "delta": text, "arguments": text, "item": item,
            "response": { "status": kind.rsplit('.').next(), "output": [item] },
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn fuzz_any_response_stream_is_reply_or_failure(events in prop::collection::vec(any_event(), 0..8)) {
        if let Ok(reply) = read_wire(&render_events(&events)) {
            for call in reply.tool_calls() {
                prop_assert!(!call.name.is_empty());
                prop_assert!(!call.id.is_empty());
            }
            let settings = build_offline_settings(DIALECT);
            let body = build_request_body(&settings, &append_reply(build_opening_transcript(), reply));
            let last = body["input"].as_array().unwrap().last().unwrap()["type"].clone();
            prop_assert_ne!(last, "reasoning");
        }
    }

    #[test]
    fn fuzz_response_streams_read_alike_in_any_pieces(ends in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        for (server, events) in two_calls() {
            let wire = render_events(&events);
            let reply = read_offering(&TOOLS, DIALECT, split_bytes(wire.as_bytes(), &ends)).unwrap();
            prop_assert_eq!(list_paths(&reply), vec!["a", "b"], "{}", server);
        }
    }
}
