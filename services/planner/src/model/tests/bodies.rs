//! Request bodies, byte for byte where caches depend on it.

use domain::{ReplyBlock, ToolCall};
use serde_json::Value;

use super::*;
use crate::config::ModelSettings;
use crate::model::dialect::{self, ModelRequest};
use crate::transcript::{MessagePart, OutputSchema, TranscriptImage};

pub(super) fn build_request_body(settings: &ModelSettings, transcript: &ModelTranscript) -> Value {
    dialect::find_dialect(&settings.dialect)
        .unwrap()
        .body(&ModelRequest {
            settings,
            provider: "default",
            transcript,
            keep_thinking: true,
            keep_images: settings.takes_images(),
        })
}

fn build_endpoint_url(settings: &ModelSettings) -> String {
    dialect::find_dialect(&settings.dialect).unwrap().url(settings)
}

fn append_call(transcript: &mut ModelTranscript, id: &str) {
    let call = ToolCall {
        id: id.to_owned(),
        name: "read_file".to_owned(),
        input: json!({ "path": "a" }),
    };
    let result = (id.to_owned(), ToolResult::ok("text"));
    transcript.messages.extend([
        TranscriptMessage::Assistant(vec![ReplyBlock::ToolCall(call)]),
        TranscriptMessage::ToolResults(vec![result]),
    ]);
}

/// Returns the places and lifetimes of the cache markers.
fn find_cache_markers(body: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut look = |place: String, block: &Value| {
        if let Some(marker) = block.get("cache_control") {
            found.push((place, marker["ttl"].as_str().unwrap_or("5m").to_owned()));
        }
    };
    for list in ["tools", "system"] {
        for (at, block) in body[list].as_array().into_iter().flatten().enumerate() {
            look(format!("{list}.{at}"), block);
        }
    }
    for (at, message) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (place, block) in message["content"].as_array().unwrap().iter().enumerate() {
            look(format!("messages.{at}.{place}"), block);
        }
    }
    found
}

fn build_expected_markers(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(place, ttl)| ((*place).to_owned(), (*ttl).to_owned()))
        .collect()
}

#[test]
fn cache_marks_follow_shared_to_newest_order() {
    let settings = build_offline_settings("anthropic");
    let mut transcript = build_opening_transcript();
    assert_eq!(
        find_cache_markers(&build_request_body(&settings, &transcript)),
        build_expected_markers(&[("system.0", "1h"), ("system.1", "1h"), ("messages.0.0", "5m")])
    );
    append_call(&mut transcript, "a");
    append_call(&mut transcript, "b");
    let shown = build_request_body(&settings, &transcript);
    assert_eq!(
        find_cache_markers(&shown),
        build_expected_markers(&[
            ("system.0", "1h"),
            ("system.1", "1h"),
            ("messages.2.0", "5m"),
            ("messages.4.0", "5m"),
        ])
    );
    let short = ModelSettings {
        long_cache: Some(false),
        ..settings
    };
    assert!(
        find_cache_markers(&build_request_body(&short, &transcript))
            .iter()
            .all(|(_, ttl)| ttl == "5m")
    );
}

#[test]
fn cache_marks_last_tool_without_system_prompt() {
    let settings = build_offline_settings("anthropic");
    let bare = ModelTranscript {
        system: Vec::new(),
        ..build_opening_transcript()
    };
    let shown = build_request_body(&settings, &bare);
    assert_eq!(
        find_cache_markers(&shown),
        build_expected_markers(&[("tools.0", "1h"), ("messages.0.0", "5m")])
    );
    assert!(shown.get("system").is_none());
    let once = ModelTranscript {
        tools: Vec::new(),
        ..build_opening_transcript()
    };
    let shown = build_request_body(&settings, &once);
    assert_eq!(
        find_cache_markers(&shown),
        build_expected_markers(&[("system.0", "1h"), ("system.1", "1h")])
    );
    assert!(shown.get("tools").is_none());
}

#[test]
fn repeated_content_has_identical_bytes() {
    let without_markers = |mut body: Value| {
        let message_lists = body["messages"].as_array_mut().unwrap().iter_mut();
        for block in message_lists.flat_map(|message| message["content"].as_array_mut().unwrap()) {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        body["messages"].as_array().unwrap().clone()
    };
    let settings = build_offline_settings("anthropic");
    let mut transcript = build_opening_transcript();
    let mut before: Vec<Value> = Vec::new();
    for id in ["a", "b", "c"] {
        let shown = without_markers(build_request_body(&settings, &transcript));
        assert_eq!(shown[..before.len()], before);
        before = shown;
        append_call(&mut transcript, id);
    }
}

fn build_thinking_block(provider: &str, model: &str) -> ReplyBlock {
    ReplyBlock::Opaque {
        dialect: "anthropic".to_owned(),
        provider: provider.to_owned(),
        model: model.to_owned(),
        value: json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" }),
    }
}

#[test]
fn thinking_returns_only_to_its_model() {
    let settings = build_offline_settings("anthropic");
    let redacted = ReplyBlock::Opaque {
        dialect: "anthropic".to_owned(),
        provider: "default".to_owned(),
        model: "scripted".to_owned(),
        value: json!({ "type": "redacted_thinking", "data": "x" }),
    };
    let say = |text: &str| ReplyBlock::Text {
        text: text.to_owned(),
    };
    let mut transcript = build_opening_transcript();
    transcript.messages.extend([
        TranscriptMessage::Assistant(vec![
            build_thinking_block("default", "scripted"),
            redacted,
            say("One."),
            build_thinking_block("backup", "scripted"),
            build_thinking_block("default", "another"),
            build_thinking_block("", ""),
        ]),
        TranscriptMessage::User("On.".to_owned()),
        TranscriptMessage::Assistant(vec![build_thinking_block("backup", "scripted")]),
        TranscriptMessage::User("On.".to_owned()),
    ]);
    let shown = build_request_body(&settings, &transcript);
    let kinds = |at: usize| -> Vec<String> {
        let content = shown["messages"][at]["content"].as_array().unwrap();
        content
            .iter()
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds(1), ["thinking", "redacted_thinking", "text", "thinking"]);
    assert_eq!(shown["messages"][1]["content"][0]["signature"], "s");
    assert_eq!(kinds(3), ["text"], "a reply is never empty");
    let elsewhere = build_request_body(&build_offline_settings("openai"), &transcript);
    assert!(!elsewhere.to_string().contains("Hm."));
}

#[test]
fn reply_of_thinking_alone_ends_with_text() {
    let mut transcript = build_opening_transcript();
    transcript.messages.extend([
        TranscriptMessage::Assistant(vec![build_thinking_block("default", "scripted")]),
        TranscriptMessage::User("On.".to_owned()),
    ]);
    let shown = build_request_body(&build_offline_settings("anthropic"), &transcript);
    let content = &shown["messages"][1]["content"];
    assert_eq!(content[0]["thinking"], "Hm.");
    assert_eq!(content[1], json!({ "type": "text", "text": "(no words)" }));
}

#[test]
fn reasoning_returns_under_received_field_name() {
    let settings = build_offline_settings("openai");
    let reasoning = ReplyBlock::Opaque {
        dialect: "openai".to_owned(),
        provider: "default".to_owned(),
        model: "scripted".to_owned(),
        value: json!({ "reasoning_content": "Hm." }),
    };
    let mut transcript = build_opening_transcript();
    transcript.messages.extend([
        TranscriptMessage::Assistant(vec![reasoning]),
        TranscriptMessage::User("On.".to_owned()),
    ]);
    assert_eq!(
        build_request_body(&settings, &transcript)["messages"][2]["reasoning_content"],
        "Hm."
    );
}

#[test]
fn chat_reply_without_text_or_call_has_content() {
    let reasoning = ReplyBlock::Opaque {
        dialect: "openai".to_owned(),
        provider: "default".to_owned(),
        model: "another".to_owned(),
        value: json!({ "reasoning_content": "Hm." }),
    };
    let mut transcript = build_opening_transcript();
    transcript.messages.extend([
        TranscriptMessage::Assistant(vec![reasoning]),
        TranscriptMessage::User("On.".to_owned()),
    ]);
    append_call(&mut transcript, "a");
    let shown = build_request_body(&build_offline_settings("openai"), &transcript);
    let silent = json!({ "role": "assistant", "content": "(no words)" });
    assert_eq!(shown["messages"][2], silent, "a message is never empty");
    assert_eq!(shown["messages"][4]["content"], Value::Null);
}

#[test]
fn thinking_budget_pauses_after_foreign_reply() {
    let mut settings = build_offline_settings("anthropic");
    settings.thinking = Some(crate::config::ThinkingMode::Budget(2000));
    let mut transcript = build_opening_transcript();
    let budget = json!({ "type": "enabled", "budget_tokens": 2000 });
    assert_eq!(build_request_body(&settings, &transcript)["thinking"], budget);
    append_call(&mut transcript, "a");
    assert!(
        build_request_body(&settings, &transcript)
            .get("thinking")
            .is_none()
    );
    transcript
        .messages
        .push(TranscriptMessage::Assistant(vec![ReplyBlock::Text {
            text: "Done.".to_owned(),
        }]));
    transcript
        .messages
        .push(TranscriptMessage::User("On.".to_owned()));
    assert_eq!(build_request_body(&settings, &transcript)["thinking"], budget);
}

#[test]
fn reply_schema_is_sent_in_each_dialect() {
    let output = OutputSchema {
        name: "verdict".to_owned(),
        schema: json!({
            "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"],
        }),
    };
    let transcript = ModelTranscript {
        output: Some(output),
        ..build_opening_transcript()
    };
    let closed = json!({
        "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"],
        "additionalProperties": false,
    });
    let mut anthropic = build_offline_settings("anthropic");
    anthropic.effort = Some("low".to_owned());
    assert_eq!(
        build_request_body(&anthropic, &transcript)["output_config"],
        json!({ "effort": "low", "format": { "type": "json_schema", "schema": closed } })
    );
    assert_eq!(
        build_request_body(&build_offline_settings("openai"), &transcript)["response_format"],
        json!({ "type": "json_schema", "json_schema": { "name": "verdict", "schema": closed, "strict": true } })
    );
}

#[test]
fn openai_cache_key_follows_phase_and_repository() {
    let openai = from_json(json!({ "dialect": "openai", "name": "gpt-6-sol", "api_key": "k" }));
    let key =
        |transcript: &ModelTranscript| build_request_body(&openai, transcript)["prompt_cache_key"].clone();
    let mut later = build_opening_transcript();
    append_call(&mut later, "a");
    assert_eq!(key(&build_opening_transcript()), key(&later));
    let other = ModelTranscript {
        system: vec!["Work.".to_owned(), "There.".to_owned()],
        ..build_opening_transcript()
    };
    assert_ne!(key(&build_opening_transcript()), key(&other));
    let compatible = build_request_body(&build_offline_settings("openai"), &build_opening_transcript());
    assert!(compatible.get("prompt_cache_key").is_none() && compatible.get("max_tokens").is_some());
}

#[test]
fn ids_of_other_servers_still_belong_together() {
    let mut transcript = build_opening_transcript();
    append_call(&mut transcript, "functions.read_file:0");
    let shown = build_request_body(&build_offline_settings("anthropic"), &transcript);
    let call = &shown["messages"][1]["content"][0]["id"];
    assert_eq!(call, "c00001000");
    assert_eq!(&shown["messages"][2]["content"][0]["tool_use_id"], call);
}

#[test]
fn each_base_address_leads_to_endpoint() {
    for base in ["http://h", "http://h/", "http://h/v1", "http://h/v1/"] {
        assert_eq!(
            build_endpoint_url(&build_model_settings("openai", base)),
            "http://h/v1/chat/completions"
        );
        assert_eq!(
            build_endpoint_url(&build_model_settings("openai-responses", base)),
            "http://h/v1/responses"
        );
        assert_eq!(
            build_endpoint_url(&build_model_settings("anthropic", base)),
            "http://h/v1/messages"
        );
    }
    let whole = "https://h/v1beta/openai/chat/completions";
    assert_eq!(build_endpoint_url(&build_model_settings("openai", whole)), whole);
    let azure = from_json(json!({
        "dialect": "openai", "name": "coder", "api_key": "k",
        "base_url": "https://acme.openai.azure.com", "api_version": "2025-04-01-preview",
    }));
    assert_eq!(
        build_endpoint_url(&azure),
        "https://acme.openai.azure.com/openai/deployments/coder/chat/completions?api-version=2025-04-01-preview"
    );
    let responses = ModelSettings {
        dialect: "openai-responses".to_owned(),
        ..azure
    };
    assert_eq!(
        build_endpoint_url(&responses),
        "https://acme.openai.azure.com/openai/responses?api-version=2025-04-01-preview"
    );
    let next = ModelSettings {
        base_url: Some("https://acme.openai.azure.com/openai/v1".to_owned()),
        api_version: None,
        ..responses
    };
    assert_eq!(
        build_endpoint_url(&next),
        "https://acme.openai.azure.com/openai/v1/responses"
    );
    let bedrock = from_json(json!({
        "dialect": "bedrock", "name": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "region": "eu-central-1",
    }));
    assert_eq!(
        build_endpoint_url(&bedrock),
        "https://bedrock-runtime.eu-central-1.amazonaws.com/model/\
         eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
    );
    assert_eq!(
        build_request_body(&bedrock, &build_opening_transcript())["anthropic_version"],
        "bedrock-2023-05-31"
    );
}

/// Message with an image that is loaded, or not.
pub(super) fn build_image_message(data: Option<&str>) -> TranscriptMessage {
    TranscriptMessage::Parts(vec![
        MessagePart::Text("Image `x.png`:".to_owned()),
        MessagePart::Image(TranscriptImage {
            name: "x.png".to_owned(),
            alt: "the dialog".to_owned(),
            format: domain::ImageFormat::Png,
            object: domain::ObjectRef {
                sha256: "a".repeat(64),
                size_bytes: 3,
            },
            width: 40,
            height: 30,
            data: data.map(Into::into),
        }),
    ])
}

#[test]
fn image_becomes_block_of_each_dialect() {
    let mut transcript = build_opening_transcript();
    transcript.messages.push(build_image_message(Some("AAAA")));
    let with_images = |dialect: &str| ModelSettings {
        images: Some(true),
        ..build_offline_settings(dialect)
    };
    let shown = build_request_body(&with_images("anthropic"), &transcript);
    // The image joins the task, because roles alternate.
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1);
    let block = &shown["messages"][0]["content"][2];
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    assert_eq!((&block["type"], &block["source"]), (&json!("image"), &source));
    let shown = build_request_body(&with_images("openai"), &transcript);
    let content = &shown["messages"].as_array().unwrap().last().unwrap()["content"];
    assert_eq!(content[0], json!({ "type": "text", "text": "Image `x.png`:" }));
    assert_eq!(content[1]["image_url"]["url"], "data:image/png;base64,AAAA");
    let shown = build_request_body(&with_images("openai-responses"), &transcript);
    let text = |content: &str| json!({ "type": "input_text", "text": content });
    let message = |parts: &[Value]| json!({ "type": "message", "role": "user", "content": parts });
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" });
    assert_eq!(
        shown["input"],
        json!([
            message(&[text("Implement ENG-12.")]),
            message(&[text("Image `x.png`:"), image]),
        ])
    );
}

#[test]
fn image_is_named_where_it_is_not_shown() {
    let placeholder = "(image `x.png`, not shown: the dialog)";
    for (images, data) in [(false, Some("AAAA")), (true, None)] {
        let mut transcript = build_opening_transcript();
        transcript.messages.push(build_image_message(data));
        for dialect in DIALECTS {
            let settings = ModelSettings {
                images: Some(images),
                ..build_offline_settings(dialect)
            };
            let shown = build_request_body(&settings, &transcript).to_string();
            assert!(shown.contains(placeholder), "{shown}");
            assert!(!shown.contains("AAAA") && !shown.contains("image_url"), "{shown}");
        }
    }
}
