//! Models against the scripted stand-in.

mod bodies;
mod chains;
mod gateways;
mod providers;
mod responses;
mod streams;

use domain::{ModelRole, ReplyBlock, ReplyStop, ToolResult, ToolSpec};
use serde_json::json;
use testkit::{ScriptStep, ScriptedModel, ServiceFault, model::MODEL_API_KEY};

use super::{ModelClients, ModelError};
use crate::config::ModelSettings;
use crate::transcript::{ModelTranscript, TranscriptMessage};

const DIALECTS: [&str; 3] = ["anthropic", "openai", "openai-responses"];

/// Parses settings as in a file.
pub(crate) fn from_json(settings: serde_json::Value) -> ModelSettings {
    serde_json::from_value(settings).unwrap()
}

pub(crate) fn build_model_settings(dialect: &str, url: &str) -> ModelSettings {
    from_json(json!({
        "dialect": dialect,
        "base_url": url,
        "name": "scripted",
        "api_key": MODEL_API_KEY,
        "max_output_tokens": 4000,
        "connect_timeout_ms": 2_000,
        "idle_timeout_ms": 5_000,
        "total_timeout_ms": 20_000,
    }))
}

/// Settings of a model that no test asks.
fn build_offline_settings(dialect: &str) -> ModelSettings {
    build_model_settings(dialect, "http://127.0.0.1:1")
}

/// Settings with these fields in addition.
fn build_settings(mut all: serde_json::Value, more: &serde_json::Value) -> ModelSettings {
    for (key, value) in more.as_object().unwrap() {
        all[key.as_str()] = value.clone();
    }
    from_json(all)
}

/// Starts a stand-in that replies with these steps.
async fn start_model(script: Vec<ScriptStep>) -> ScriptedModel {
    ScriptedModel::start(script).await.unwrap()
}

/// Adds a reply and the results of its calls, if it has any, to a conversation.
fn append_turn(
    transcript: &mut ModelTranscript,
    reply: domain::ModelReply,
    results: impl IntoIterator<Item = ToolResult>,
) {
    let ids = reply.tool_calls().map(|call| call.id.clone());
    let results: Vec<_> = ids.zip(results).collect();
    transcript
        .messages
        .push(TranscriptMessage::Assistant(reply.blocks));
    if !results.is_empty() {
        transcript.messages.push(TranscriptMessage::ToolResults(results));
    }
}

/// Adds the provider and model, which the stream itself does not contain.
fn stamp_reply(mut reply: domain::ModelReply, named: &str) -> domain::ModelReply {
    for block in &mut reply.blocks {
        if let ReplyBlock::Opaque { provider, model, .. } = block {
            (*provider, *model) = ("default".to_owned(), named.to_owned());
        }
    }
    reply
}

fn build_opening_transcript() -> ModelTranscript {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    ModelTranscript {
        system: vec!["Work.".to_owned(), "Here.".to_owned()],
        tools: vec![ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads.".to_owned(),
            input_schema: schema,
            read_only: true,
        }],
        messages: vec![TranscriptMessage::User("Implement ENG-12.".to_owned())],
        output: None,
    }
}

fn build_read_step() -> ScriptStep {
    ScriptStep::call(
        "read_file",
        json!({ "path": "shop/cart.py", "note": "ü \"quoted\"" }),
    )
}

async fn ask_model(
    model: &ScriptedModel,
    dialect: &str,
    transcript: &ModelTranscript,
) -> Result<domain::ModelReply, ModelError> {
    ask_with_settings(&build_model_settings(dialect, &model.url()), transcript).await
}

async fn ask_with_settings(
    settings: &ModelSettings,
    transcript: &ModelTranscript,
) -> Result<domain::ModelReply, ModelError> {
    ModelClients::new(settings)
        .unwrap()
        .chat(&ModelRole::Default.into(), "jira:ENG-12@1", transcript)
        .await
}

#[tokio::test]
async fn tool_conversation_works_in_each_dialect() {
    for dialect in DIALECTS {
        let script = vec![
            build_read_step().and_call("read_file", json!({ "path": "b" })),
            ScriptStep::reply("Done.").expecting("total = 1"),
            ScriptStep::reply("Bye.").expecting("Once more."),
        ];
        let model = start_model(script).await;
        let mut transcript = build_opening_transcript();
        let reply = ask_model(&model, dialect, &transcript).await.unwrap();
        assert_eq!(reply.stop, ReplyStop::ToolUse);
        assert!(
            reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0,
            "{:?}",
            reply.usage
        );
        let calls: Vec<_> = reply.tool_calls().cloned().collect();
        assert_eq!(calls.len(), 2);
        assert_eq!(
            calls[0].input,
            json!({ "path": "shop/cart.py", "note": "ü \"quoted\"" })
        );

        let results = [ToolResult::ok("total = 1"), ToolResult::error("no such file")];
        append_turn(&mut transcript, reply, results);
        let reply = ask_model(&model, dialect, &transcript).await.unwrap();
        assert_eq!((reply.stop, reply.text().as_str()), (ReplyStop::EndTurn, "Done."));

        let reminder = TranscriptMessage::User("Once more.".to_owned());
        transcript.messages.extend([
            TranscriptMessage::Assistant(vec![ReplyBlock::Text {
                text: "Done.".to_owned(),
            }]),
            reminder,
        ]);
        assert_eq!(
            ask_model(&model, dialect, &transcript).await.unwrap().text(),
            "Bye."
        );
        assert_eq!(model.violations(), Vec::<String>::new());
        model.stop().await;
    }
}

#[tokio::test]
async fn an_overloaded_provider_is_asked_again() {
    for dialect in DIALECTS {
        for status in [429, 500, 529] {
            let model = start_model(vec![ScriptStep::reply("Hello.")]).await;
            model.fail_next(ServiceFault::new("/v1/", 1, status));
            assert_eq!(
                ask_model(&model, dialect, &build_opening_transcript())
                    .await
                    .unwrap()
                    .text(),
                "Hello."
            );
        }
    }
}

#[tokio::test]
async fn a_cut_stream_is_asked_again() {
    for dialect in DIALECTS {
        let model = start_model(vec![build_read_step()]).await;
        model.cut_next(1);
        assert_eq!(
            ask_model(&model, dialect, &build_opening_transcript())
                .await
                .unwrap()
                .tool_calls()
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn refused_request_fails_at_once_by_class() {
    for dialect in DIALECTS {
        let model = start_model(vec![ScriptStep::reply("Hello.")]).await;
        model.fail_next(ServiceFault::new("/v1/", 1, 400));
        let ModelError { words, .. } = ask_model(&model, dialect, &build_opening_transcript())
            .await
            .unwrap_err();
        assert!(
            words.starts_with("the model provider refused the request: 400"),
            "{words}"
        );
        assert!(model.calls().is_empty());
    }
}

#[tokio::test]
async fn garbage_fails_after_two_tries() {
    for dialect in DIALECTS {
        let model = start_model(vec![ScriptStep::reply("Hello.")]).await;
        model.garble_next(1);
        assert_eq!(
            ask_model(&model, dialect, &build_opening_transcript())
                .await
                .unwrap()
                .text(),
            "Hello."
        );
        model.garble_next(2);
        let ModelError { words, kind, .. } = ask_model(&model, dialect, &build_opening_transcript())
            .await
            .unwrap_err();
        assert!(words.contains("cannot be read"), "{words}");
        // A proxy sends an HTML page while the provider is down.
        assert!(super::is_transient(kind));
    }
}
