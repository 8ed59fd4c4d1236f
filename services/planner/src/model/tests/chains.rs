//! Roles, fallbacks and choices of models.

use super::*;
use crate::model::ModelSelection;
use domain::ModelFault;

async fn start_model_pair() -> (ScriptedModel, ScriptedModel, ModelSettings) {
    let start = |word: &str| {
        ScriptedModel::start(vec![
            build_read_step(),
            ScriptStep::reply(word),
            ScriptStep::reply(word),
        ])
    };
    let (first, second) = (start("First.").await.unwrap(), start("Second.").await.unwrap());
    let settings = from_json(json!({
        "name": "strong", "api_key": MODEL_API_KEY, "base_url": first.url(),
        "fallbacks": ["backup"],
        "providers": { "backup": {
            "dialect": "openai", "name": "spare", "api_key": MODEL_API_KEY, "base_url": second.url(),
        } },
        "roles": { "fast": { "name": "small" }, "reviewer": { "provider": "backup", "effort": "high", "fallbacks": [] } },
    }));
    (first, second, settings)
}

async fn chat_with_models(
    models: &ModelClients,
    choice: &ModelSelection,
    transcript: &ModelTranscript,
) -> Result<domain::ModelReply, ModelError> {
    models.chat(choice, "jira:ENG-12@1", transcript).await
}

fn asked_models(model: &ScriptedModel) -> Vec<String> {
    let name = |call: &testkit::model::ModelCall| call.request["model"].as_str().unwrap().to_owned();
    model.calls().iter().map(name).collect()
}

#[tokio::test]
async fn conversation_continues_at_fallback_and_returns() {
    let (first, second, settings) = start_model_pair().await;
    first.set_script(
        "ENG-12",
        vec![
            build_read_step().thinking("Hm."),
            ScriptStep::reply("Unused."),
            ScriptStep::reply("First."),
        ],
    );
    let models = ModelClients::new(&settings).unwrap();
    let choice = ModelRole::Default.into();
    let mut transcript = build_opening_transcript();
    let reply = chat_with_models(&models, &choice, &transcript).await.unwrap();
    assert_eq!(
        (reply.provider.as_str(), reply.model.as_str()),
        ("default", "strong")
    );
    append_turn(&mut transcript, reply, [ToolResult::ok("total = 1")]);

    first.fail_next(ServiceFault::new("/v1/", 3, 529));
    let reply = chat_with_models(&models, &choice, &transcript).await.unwrap();
    assert_eq!(
        (reply.provider.as_str(), reply.text().as_str()),
        ("backup", "Second.")
    );
    assert!(!second.calls()[0].request.to_string().contains("Hm."));
    transcript
        .messages
        .push(TranscriptMessage::Assistant(reply.blocks));
    transcript
        .messages
        .push(TranscriptMessage::User("Once more.".to_owned()));

    // The failed provider rests. When it is asked again, it gets its own thinking back.
    let reply = chat_with_models(&models, &choice, &transcript).await.unwrap();
    assert_eq!(reply.provider, "backup");
    let again = ModelClients::new(&settings).unwrap();
    let reply = chat_with_models(&again, &choice, &transcript).await.unwrap();
    assert_eq!(
        (reply.provider.as_str(), reply.text().as_str()),
        ("default", "First.")
    );
    assert!(first.calls()[1].request.to_string().contains("Hm."));
    assert_eq!(
        (first.violations(), second.violations()),
        (Vec::new(), Vec::new())
    );
}

#[tokio::test]
async fn failed_chain_error_names_providers_stays_transient() {
    let (first, second, mut settings) = start_model_pair().await;
    settings.providers.get_mut("backup").unwrap().api_key = Some("wrong".into());
    first.fail_next(ServiceFault::new("/v1/", 9, 529));
    let models = ModelClients::new(&settings).unwrap();
    let error = chat_with_models(&models, &ModelRole::Default.into(), &build_opening_transcript())
        .await
        .unwrap_err();
    assert!(
        error.words.contains("default: the model provider at 127.0.0.1:")
            && error.words.contains("is overloaded")
            && error
                .words
                .contains("backup: the model provider refused the credentials"),
        "{error}"
    );
    assert!(crate::model::is_transient(error.kind));
    assert!(second.calls().is_empty());
}

#[tokio::test]
async fn refused_request_skips_fallback_providers() {
    let (first, second, settings) = start_model_pair().await;
    first.fail_next(ServiceFault::new("/v1/", 1, 400));
    let models = ModelClients::new(&settings).unwrap();
    let error = chat_with_models(&models, &ModelRole::Default.into(), &build_opening_transcript())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelFault::Refused);
    assert!(second.calls().is_empty());
}

#[tokio::test]
async fn roles_select_models_unless_choice_overrides() {
    let (first, second, settings) = start_model_pair().await;
    let models = ModelClients::new(&settings).unwrap();
    let named = |role, model: &str| ModelSelection {
        role,
        model: Some(model.to_owned()),
    };
    let choices = [
        ModelRole::Default.into(),
        ModelRole::Fast.into(),
        ModelRole::Reviewer.into(),
        named(ModelRole::Default, "other:8b"),
        named(ModelRole::Fast, "backup"),
        named(ModelRole::Reviewer, "default:third"),
    ];
    for choice in &choices {
        chat_with_models(&models, choice, &build_opening_transcript())
            .await
            .unwrap();
    }
    assert_eq!(asked_models(&first), ["strong", "small", "other:8b", "third"]);
    assert_eq!(asked_models(&second), ["spare", "spare"]);
    assert_eq!(second.calls()[0].request["reasoning_effort"], "high");
}

#[test]
fn deployment_reply_costs_price_of_real_model() {
    let settings = from_json(json!({
        "dialect": "openai", "name": "coder", "api_key": "k",
        "base_url": "https://acme.openai.azure.com", "api_version": "2025-04-01-preview",
    }));
    let models = ModelClients::new(&settings).unwrap();
    let (link, _) = models.links(&ModelRole::Default.into()).remove(0);
    let reply = |model: &str| {
        link.stamped(domain::ModelReply {
            blocks: Vec::new(),
            stop: ReplyStop::EndTurn,
            usage: domain::TokenUsage {
                input_tokens: 1000,
                ..domain::TokenUsage::default()
            },
            model: model.to_owned(),
            provider: String::new(),
            cost_micros: None,
        })
    };
    assert_eq!(reply("gpt-6-sol-2026-09-22").cost_micros, Some(2000));
    assert_eq!(reply("of-our-own").cost_micros, None);
    assert_eq!(reply("").model, "coder");
}

#[test]
fn dialect_outside_of_build_names_its_feature() {
    let describe = crate::model::roles::describe_unknown_dialect;
    assert!(describe("bedrock").contains("cargo feature `bedrock`"));
    assert_eq!(
        describe("morse"),
        "must be one of anthropic, openai, openai-responses, bedrock"
    );
}

#[test]
fn a_wrong_section_is_named() {
    let main = json!({ "name": "m", "api_key": "k" });
    let with = |key: &str, value: serde_json::Value| {
        let mut settings = main.clone();
        settings[key] = value;
        crate::model::check_models(&from_json(settings)).map_err(|error| error.key)
    };
    let cases = [
        ("dialect", json!("morse"), "model.dialect"),
        ("dialect", json!("bedrock"), "model.region"),
        ("auth_token", json!("t"), "model.auth_token"),
        ("thinking", json!("20000"), "model.thinking"),
        ("fallbacks", json!(["nobody"]), "model.fallbacks"),
        (
            "roles",
            json!({ "fast": { "provider": "nobody" } }),
            "model.roles.fast.provider",
        ),
        (
            "roles",
            json!({ "fast": { "fallbacks": "nobody" } }),
            "model.roles.fast.fallbacks",
        ),
        (
            "roles",
            json!({ "reviewer": { "max_output_tokens": 9, "thinking": 1024 } }),
            "model.roles.reviewer.thinking",
        ),
        (
            "providers",
            json!({ "b": { "name": "m" } }),
            "model.providers.b.api_key",
        ),
        (
            "providers",
            json!({ "default": { "name": "m", "api_key": "k" } }),
            "model.providers.default",
        ),
        (
            "providers",
            json!({ "b": { "name": "m", "api_key": "k", "fallbacks": ["b"] } }),
            "model.providers.b.fallbacks",
        ),
        (
            "providers",
            json!({ "b": { "name": "m", "api_key": "k", "base_url": "http://model.example" } }),
            "model.providers.b.base_url",
        ),
        (
            "prices",
            json!({ "m": { "input": -1.0, "output": 1.0 } }),
            "model.prices.m",
        ),
    ];
    for (key, value, wrong) in cases {
        assert_eq!(with(key, value.clone()), Err(wrong.to_owned()), "{key} = {value}");
    }
    let fine = [
        ("thinking", json!("adaptive")),
        ("thinking", json!(2048)),
        ("fallbacks", json!("default:other")),
        ("roles", json!({ "fast": { "name": "small" } })),
    ];
    for (key, value) in fine {
        assert_eq!(with(key, value.clone()), Ok(()), "{key} = {value}");
    }
}
