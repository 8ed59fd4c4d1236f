//! All providers against the stand-in: credentials, thinking, caches, structured output.

use domain::{ModelFault, ReplyBlock};
use testkit::model::{MODEL_ACCESS_KEY_ID, MODEL_AUTH_TOKEN, MODEL_REGION, MODEL_SECRET_ACCESS_KEY};

use super::bodies::build_image_message;
use super::*;
use crate::model::target::ModelTarget;
use crate::transcript::{OutputSchema, read_structured};

fn build_provider_settings(dialect: &str, url: &str, more: serde_json::Value) -> ModelSettings {
    let all = json!({ "dialect": dialect, "base_url": url, "name": "scripted", "max_output_tokens": 4000 });
    build_settings(all, &more)
}

fn list_credential_settings(url: &str) -> Vec<(&'static str, ModelSettings)> {
    let signed = json!({
        "name": "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "region": MODEL_REGION,
        "aws_access_key_id": MODEL_ACCESS_KEY_ID,
        "aws_secret_access_key": MODEL_SECRET_ACCESS_KEY,
    });
    let azure = json!({ "api_key": MODEL_API_KEY, "api_version": "2025-04-01-preview", "name": "coder" });
    vec![
        (
            "anthropic",
            build_provider_settings("anthropic", url, json!({ "api_key": MODEL_API_KEY })),
        ),
        (
            "anthropic",
            build_provider_settings("anthropic", url, json!({ "auth_token": MODEL_AUTH_TOKEN })),
        ),
        (
            "openai",
            build_provider_settings("openai", url, json!({ "api_key": MODEL_API_KEY })),
        ),
        ("azure", build_provider_settings("openai", url, azure.clone())),
        ("bedrock", build_provider_settings("bedrock", url, signed)),
        (
            "bedrock",
            build_provider_settings(
                "bedrock",
                url,
                json!({ "api_key": MODEL_API_KEY, "region": MODEL_REGION }),
            ),
        ),
        (
            "openai-responses",
            build_provider_settings("openai-responses", url, json!({ "api_key": MODEL_API_KEY })),
        ),
        (
            "azure-responses",
            build_provider_settings("openai-responses", url, azure),
        ),
    ]
}

#[tokio::test]
async fn every_credential_kind_holds_tool_conversation() {
    for place in 0..list_credential_settings("").len() {
        let script = vec![
            build_read_step().and_call("read_file", json!({ "path": "b" })),
            ScriptStep::reply("Done.").expecting("total = 1"),
        ];
        let model = start_model(script).await;
        let (dialect, settings) = list_credential_settings(&model.url()).remove(place);
        let mut transcript = build_opening_transcript();
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        assert_eq!(reply.stop, ReplyStop::ToolUse);
        assert_eq!(reply.provider, "default");
        let results = [ToolResult::ok("total = 1"), ToolResult::error("no such file")];
        append_turn(&mut transcript, reply, results);
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        assert_eq!(reply.text(), "Done.");
        assert_eq!(model.violations(), Vec::<String>::new());
        assert!(model.calls().iter().all(|call| call.dialect == dialect));
        model.stop().await;
    }
}

#[tokio::test]
async fn refused_credentials_are_named_never_shown() {
    let model = start_model(vec![ScriptStep::reply("Hello.")]).await;
    for (_, mut settings) in list_credential_settings(&model.url()) {
        let wrong = || Some("wrong-secret".into());
        settings.api_key = settings.api_key.and(wrong());
        settings.auth_token = settings.auth_token.and(wrong());
        settings.aws_secret_access_key = settings.aws_secret_access_key.and(wrong());
        let error = ask_with_settings(&settings, &build_opening_transcript())
            .await
            .unwrap_err();
        assert_eq!(error.kind, ModelFault::CredentialsRefused, "{error}");
        assert!(error.words.contains("refused the credentials: 40"), "{error}");
        assert!(error.words.contains(" from 127.0.0.1:"), "{error}");
        assert!(!format!("{error:?}{settings:?}").contains("wrong-secret"));
    }
    assert!(model.calls().is_empty());
}

#[tokio::test]
async fn thinking_comes_back_with_its_signature() {
    for place in [0, 4] {
        let script = vec![
            build_read_step().thinking("Where is the cart? »Here«."),
            ScriptStep::reply("Done."),
        ];
        let model = start_model(script).await;
        let (_, settings) = list_credential_settings(&model.url()).remove(place);
        let mut transcript = build_opening_transcript();
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        let Some(ReplyBlock::Opaque { provider, value, .. }) = reply.blocks.first() else {
            panic!("no thinking first: {:?}", reply.blocks);
        };
        assert_eq!(provider, "default");
        assert_eq!(value["thinking"], "Where is the cart? »Here«.");
        append_turn(&mut transcript, reply.clone(), [ToolResult::ok("total = 1")]);
        assert_eq!(
            ask_with_settings(&settings, &transcript).await.unwrap().text(),
            "Done."
        );
        assert_eq!(model.violations(), Vec::<String>::new());
        let last = model.calls().pop().unwrap().request;
        assert_eq!(&last["messages"][1]["content"][0], value);
    }
}

#[tokio::test]
async fn refused_thinking_is_omitted_on_retry() {
    let model = start_model(vec![
        build_read_step().thinking("Hm."),
        ScriptStep::reply("Done."),
    ])
    .await;
    let settings = build_model_settings("anthropic", &model.url());
    let mut transcript = build_opening_transcript();
    let mut reply = ask_with_settings(&settings, &transcript).await.unwrap();
    if let Some(ReplyBlock::Opaque { value, .. }) = reply.blocks.first_mut() {
        value["signature"] = json!("of another conversation");
    }
    append_turn(&mut transcript, reply, [ToolResult::ok("total = 1")]);
    assert_eq!(
        ask_with_settings(&settings, &transcript).await.unwrap().text(),
        "Done."
    );
    assert_eq!(model.violations().len(), 1, "{:?}", model.violations());
}

/// A provider names one problem of a request, the first that it finds.
#[tokio::test]
async fn refused_images_and_thinking_are_both_omitted() {
    // Before the thinking of the first reply, and after it.
    for place in [1, 3] {
        let model = start_model(vec![
            build_read_step().thinking("Hm."),
            ScriptStep::reply("Done."),
        ])
        .await;
        let mut settings = build_model_settings("anthropic", &model.url());
        settings.images = Some(true);
        let mut transcript = build_opening_transcript();
        let mut reply = ask_with_settings(&settings, &transcript).await.unwrap();
        if let Some(ReplyBlock::Opaque { value, .. }) = reply.blocks.first_mut() {
            value["signature"] = json!("of another conversation");
        }
        append_turn(&mut transcript, reply, [ToolResult::ok("total = 1")]);
        transcript
            .messages
            .insert(place, build_image_message(Some("not base64")));
        let last = ask_with_settings(&settings, &transcript).await.unwrap();
        assert_eq!(last.text(), "Done.");
        let violations = model.violations();
        assert_eq!(violations.len(), 2, "each is refused once: {violations:?}");
        let is_about_image = violations[0].contains("image");
        assert_eq!(is_about_image, place == 1, "{violations:?}");
    }
}

#[tokio::test]
async fn lasting_refusal_of_images_ends_call() {
    let refusal = r#"{"error":{"type":"invalid_request_error","message":"Images are not supported."}}"#;
    let model = start_model(vec![ScriptStep::reply("Hello.")]).await;
    let mut settings = build_model_settings("anthropic", &model.url());
    settings.images = Some(true);
    let mut transcript = build_opening_transcript();
    transcript.messages.push(build_image_message(Some("AAAA")));
    model.fail_next(ServiceFault::new("/v1/", 10, 400).page("application/json", refusal));
    let error = ask_with_settings(&settings, &transcript).await.unwrap_err();
    assert_eq!(error.kind, ModelFault::Refused, "{error}");
    assert_eq!(*model.answered().borrow(), 2, "with the images, then without");
}

/// Refusals of `OpenRouter` and llama.cpp for a model without images.
#[tokio::test]
async fn images_are_omitted_despite_misleading_status() {
    let refusals = [
        (
            404,
            r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"image input is not supported - hint: you may need to provide the mmproj","type":"server_error"}}"#,
        ),
    ];
    for (status, refusal) in refusals {
        let model = start_model(vec![ScriptStep::reply("Hello.")]).await;
        let mut settings = build_model_settings("openai", &model.url());
        settings.images = Some(true);
        let mut transcript = build_opening_transcript();
        transcript.messages.push(build_image_message(Some("AAAA")));
        model.fail_next(ServiceFault::new("/v1/", 1, status).page("application/json", refusal));
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        assert_eq!(reply.text(), "Hello.");
        let last = model.calls().pop().unwrap().request.to_string();
        assert!(!last.contains("image_url"), "{last}");
    }
}

#[tokio::test]
async fn later_turns_and_tickets_read_cache() {
    let script = || vec![build_read_step(), build_read_step(), ScriptStep::reply("Done.")];
    for dialect in DIALECTS {
        let model = start_model(script()).await;
        let mut settings = build_model_settings(dialect, &model.url());
        settings.name = "claude-sonnet-4-5".to_owned();
        let mut transcript = build_opening_transcript();
        transcript.system[0] = "Work. ".repeat(2000);
        let mut usages = Vec::new();
        for _ in 0..3 {
            let reply = ask_with_settings(&settings, &transcript).await.unwrap();
            assert!(reply.cost_micros.is_some_and(|cost| cost > 0));
            usages.push(reply.usage);
            append_turn(&mut transcript, reply, [ToolResult::ok("total = 1")]);
        }
        assert_eq!(usages[0].cache_read_tokens, 0);
        assert!(usages[1].cache_read_tokens > 2500, "{usages:?}");
        assert!(usages[2].cache_read_tokens >= usages[1].cache_read_tokens);
        let mut other = build_opening_transcript();
        other.system[0] = "Work. ".repeat(2000);
        other.messages = vec![TranscriptMessage::User("Implement ENG-13.".to_owned())];
        let shared = ask_with_settings(&settings, &other).await.unwrap().usage;
        assert!(shared.cache_read_tokens > 2500, "{shared:?}");
        if dialect == "anthropic" {
            assert!(usages[0].cache_write_1h_tokens > 2500, "{usages:?}");
            assert!(usages[0].cache_write_1h_tokens < usages[0].cache_write_tokens);
        }
    }
}

#[tokio::test]
async fn structured_reply_is_read_from_providers() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Verdict {
        ok: bool,
    }
    let output = OutputSchema {
        name: "verdict".to_owned(),
        schema: json!({
            "type": "object",
            "properties": { "ok": { "type": "boolean" }, "why": { "type": "string", "maxLength": 80 } },
            "required": ["ok"],
        }),
    };
    for place in 0..list_credential_settings("").len() {
        let model = start_model(vec![ScriptStep::reply(r#"{"ok":true}"#)]).await;
        let (_, settings) = list_credential_settings(&model.url()).remove(place);
        let transcript = ModelTranscript {
            tools: Vec::new(),
            output: Some(output.clone()),
            ..build_opening_transcript()
        };
        let reply = ask_with_settings(&settings, &transcript).await.unwrap();
        let verdict: Verdict = read_structured(&reply).unwrap();
        assert_eq!(verdict, Verdict { ok: true });
        assert_eq!(model.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn too_long_conversation_has_separate_fault() {
    let refusals = [
        (
            "anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
        ),
        (
            "openai",
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        ),
        (
            "openai",
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
        ),
        (
            "openai-responses",
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
        ),
        (
            "openai",
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        ),
        (
            "openai",
            400,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 136973 tokens."}"#,
        ),
        (
            "openai",
            400,
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144","type":"invalid_request_error"}}"#,
        ),
        (
            "openai",
            400,
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
        ),
        (
            "openai",
            400,
            r#"{"error":{"code":"1210","message":"tokens in request more than max tokens allowed"}}"#,
        ),
        (
            "bedrock",
            400,
            r#"{"message":"Input is too long for requested model."}"#,
        ),
    ];
    for (dialect, status, body) in refusals {
        let kind = provoke_fault(dialect, status, body).await;
        assert_eq!(kind, ModelFault::ContextTooLong, "{body}");
    }
}

#[tokio::test]
async fn each_refusal_has_its_kind() {
    let refusals = [
        (
            "openai",
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ModelFault::NotOffered,
        ),
        (
            "openai",
            404,
            r#"{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}"#,
            ModelFault::NotOffered,
        ),
        (
            "anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            ModelFault::NotOffered,
        ),
        (
            "anthropic",
            403,
            r#"{"type":"error","error":{"type":"permission_error","message":"no"}}"#,
            ModelFault::CredentialsRefused,
        ),
        (
            "anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"tools: no"}}"#,
            ModelFault::Refused,
        ),
        ("openai", 400, "<html>", ModelFault::Refused),
    ];
    for (dialect, status, body, kind) in refusals {
        assert_eq!(provoke_fault(dialect, status, body).await, kind, "{body}");
    }
}

#[tokio::test]
async fn headers_of_the_settings_are_sent_along() {
    let server = FixedAnswerServer::start(|headers| match headers.get("x-team") {
        Some(team) if team == "cart" => (404, "{}"),
        _ => (401, "{}"),
    })
    .await;
    for dialect in ["anthropic", "openai", "openai-responses", "bedrock"] {
        let more = json!({
            "api_key": MODEL_API_KEY, "region": MODEL_REGION, "headers": { "X-Team": "cart" },
        });
        let error = ask_with_settings(
            &build_provider_settings(dialect, &server.url, more),
            &build_opening_transcript(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.kind, ModelFault::NotOffered, "{dialect}");
    }
}

/// Returns the kind of failure for a response.
async fn provoke_fault(dialect: &str, status: u16, body: &'static str) -> ModelFault {
    let more = json!({ "api_key": MODEL_API_KEY, "region": MODEL_REGION });
    provoke_error(dialect, status, body, more).await.0.kind
}

/// Server with one response, which stops on drop.
struct FixedAnswerServer {
    url: String,
    _server: tokio_util::task::AbortOnDropHandle<()>,
}

impl FixedAnswerServer {
    async fn start<F>(answer: F) -> Self
    where
        F: Fn(axum::http::HeaderMap) -> (u16, &'static str) + Clone + Send + Sync + 'static,
    {
        let answer = move |headers: axum::http::HeaderMap| async move {
            let (status, body) = answer(headers);
            (axum::http::StatusCode::from_u16(status).unwrap(), body)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            axum::serve(listener, axum::Router::new().fallback(answer))
                .await
                .unwrap();
        });
        Self {
            url,
            _server: tokio_util::task::AbortOnDropHandle::new(server),
        }
    }
}

/// Returns the error for a server's response, and the number of requests.
async fn provoke_error(
    dialect: &str,
    status: u16,
    body: &'static str,
    more: serde_json::Value,
) -> (ModelError, usize) {
    let requests = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = requests.clone();
    let server = FixedAnswerServer::start(move |_| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (status, body)
    })
    .await;
    let error = ask_with_settings(
        &build_provider_settings(dialect, &server.url, more),
        &build_opening_transcript(),
    )
    .await
    .unwrap_err();
    (error, requests.load(std::sync::atomic::Ordering::Relaxed))
}

#[tokio::test]
async fn refusal_names_model_address_and_key_source() {
    let key =
        json!({ "api_key": "sk-secret-12345678", "key_source": "ANTHROPIC_API_KEY", "region": MODEL_REGION });
    let invalid = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key sk-secret-12345678"}}"#;
    let (error, _) = provoke_error("anthropic", 401, invalid, key.clone()).await;
    assert!(
        error.words.contains("401 authentication_error from 127.0.0.1:"),
        "{error}"
    );
    assert!(
        error.words.contains("for the key in ANTHROPIC_API_KEY"),
        "{error}"
    );
    assert!(
        error.words.contains("it says \"invalid x-api-key [hidden]\""),
        "{error}"
    );
    let credit = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#;
    let (error, _) = provoke_error("anthropic", 400, credit, key.clone()).await;
    assert!(
        error.words.contains("out of credit") && error.words.contains("Your credit balance is too low"),
        "{error}"
    );
    let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let (error, times) = provoke_error("openai", 429, quota, key.clone()).await;
    assert!(error.words.contains("out of credit") && times == 1, "{error}");
    let model = r#"{"error":{"message":"400: {'error': '/chat/completions: Invalid model name passed in model=scripted'}","type":"None","code":"400"}}"#;
    let (error, _) = provoke_error("openai", 400, model, key.clone()).await;
    assert!(
        error
            .words
            .contains("does not offer the model scripted to this account: 400 from 127.0.0.1:"),
        "{error}"
    );
    let (error, _) = provoke_error("openai", 404, "<html>no", json!({ "api_key": "k" })).await;
    assert!(
        error.words.contains("the model scripted")
            && error.words.contains("the key in the setting model.api_key"),
        "{error}"
    );
    assert!(!error.words.contains("html"), "{error}");
}

#[tokio::test]
async fn oversized_rate_limit_request_is_sent_once() {
    let large = r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    let (error, times) = provoke_error("openai", 429, large, json!({ "api_key": "k" })).await;
    assert_eq!(
        (error.kind, error.limit, times),
        (ModelFault::NotOffered, Some(30_000), 1),
        "{error}"
    );
    assert!(
        error.words.contains("needs 40000 tokens") && error.words.contains("30000"),
        "{error}"
    );
}

#[tokio::test]
async fn unreachable_address_is_named_within_seconds() {
    // No program listens on port 1.
    let address = "127.0.0.1:1";
    let error = ask_with_settings(
        &build_model_settings("openai", &format!("http://{address}")),
        &build_opening_transcript(),
    )
    .await
    .unwrap_err();
    assert!(
        error.words.contains(&format!("at {address} cannot be reached")),
        "{error}"
    );
}

#[tokio::test]
async fn reply_without_usage_has_no_price() {
    let wire = "data: {\"model\":\"claude-sonnet-4-5\",\"choices\":[{\"delta\":{\"content\":\"Hm.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = FixedAnswerServer::start(move |_| (200, wire)).await;
    let more = json!({ "api_key": "k", "name": "claude-sonnet-4-5" });
    let reply = ask_with_settings(
        &build_provider_settings("openai", &server.url, more),
        &build_opening_transcript(),
    )
    .await
    .unwrap();
    assert_eq!((reply.text().as_str(), reply.cost_micros), ("Hm.", None));
}

#[test]
fn destination_lists_each_host_once() {
    let settings = from_json(json!({
        "dialect": "anthropic",
        "name": "claude-haiku-4-5",
        "api_key": "k",
        "providers": {
            "again": { "dialect": "anthropic", "name": "claude-haiku-4-5", "api_key": "k" },
            "own": { "dialect": "openai", "name": "m", "base_url": "http://127.0.0.1:8000/v1" }
        }
    }));
    let destination = crate::model::locate_configured_models(&settings);
    assert_eq!(destination.model, "claude-haiku-4-5");
    assert_eq!(destination.hosts, ["api.anthropic.com", "127.0.0.1:8000"]);
    assert!(destination.price.is_some());
}

#[tokio::test]
async fn empty_key_counts_as_missing() {
    let signed = json!({
        "api_key": "",
        "region": MODEL_REGION,
        "aws_access_key_id": MODEL_ACCESS_KEY_ID,
        "aws_secret_access_key": MODEL_SECRET_ACCESS_KEY,
        "aws_session_token": "",
    });
    for (name, more) in [("bedrock", signed), ("openai", json!({ "api_key": "" }))] {
        let settings = build_provider_settings(name, "http://127.0.0.1:8000", more);
        let dialect = crate::model::dialect::find_dialect(name).unwrap();
        let headers = dialect.headers(&settings).unwrap();
        assert!(!headers.contains_key("authorization"), "{name}");
        let signer = dialect.signer(&settings).unwrap();
        assert_eq!(signer.is_some(), name == "bedrock");
        if let Some(signer) = signer {
            let url = "http://127.0.0.1:8000".parse().unwrap();
            let mut request = reqwest::Request::new(reqwest::Method::POST, url);
            signer.sign(&mut request).await.unwrap();
            assert!(!request.headers().contains_key("x-amz-security-token"));
        }
    }
    for name in ["openai", "openai-responses"] {
        let keys = json!({ "api_key": MODEL_API_KEY, "auth_token": "" });
        let settings = build_provider_settings(name, "http://127.0.0.1:8000", keys);
        let dialect = crate::model::dialect::find_dialect(name).unwrap();
        let headers = dialect.headers(&settings).unwrap();
        assert_eq!(headers["authorization"], format!("Bearer {MODEL_API_KEY}"));
        let credential = ModelTarget::of("default", &settings).credential;
        assert!(credential.ends_with("model.api_key"), "{credential}");
    }
}
