//! The scripted model: both dialects, streamed and unstreamed, and their refusals.

use serde_json::{Value, json};
use testkit::model::{MODEL_API_KEY, MODEL_AUTH_TOKEN};
use testkit::{ScriptStep, ScriptedModel, ServiceFault};

use super::build_test_client;

fn build_reading_script() -> Vec<ScriptStep> {
    vec![
        ScriptStep::call(
            "read_file",
            json!({"path": "a/rather/long/path.py", "umlaut": "äöü"}),
        )
        .expecting("fix"),
        ScriptStep::reply("done").expecting("content of the file"),
    ]
}

async fn send_anthropic_request(model: &ScriptedModel, body: &Value) -> reqwest::Response {
    let request = build_test_client()
        .post(format!("{}/v1/messages", model.url()))
        .header("x-api-key", MODEL_API_KEY);
    request
        .header("anthropic-version", "2023-06-01")
        .json(body)
        .send()
        .await
        .unwrap()
}

async fn send_openai_request(model: &ScriptedModel, body: &Value) -> reqwest::Response {
    let request = build_test_client().post(format!("{}/v1/chat/completions", model.url()));
    request
        .bearer_auth(MODEL_API_KEY)
        .json(body)
        .send()
        .await
        .unwrap()
}

fn anthropic_request(messages: &Value) -> Value {
    let tool = json!({"name": "read_file", "description": "reads", "input_schema": {"type": "object"}});
    json!({"model": "m", "max_tokens": 100, "messages": messages, "tools": [tool]})
}

fn openai_request(messages: &Value) -> Value {
    let function = json!({"name": "read_file", "description": "reads", "parameters": {"type": "object"}});
    json!({"model": "m", "messages": messages, "tools": [{"type": "function", "function": function}]})
}

fn parse_events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

#[tokio::test]
async fn anthropic_plays_the_script_to_its_end() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let opening = json!({"role": "user", "content": "please fix it"});
    let first: Value = send_anthropic_request(&model, &anthropic_request(&json!([opening])))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(first["stop_reason"], "tool_use");
    let id = &first["content"][0]["id"];
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": "the content of the file"});
    let messages = json!([opening, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]);
    let second: Value = send_anthropic_request(&model, &anthropic_request(&messages))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(second["content"][0]["text"], "done");
    assert_eq!(second["stop_reason"], "end_turn");
    assert_eq!(
        model.calls().iter().map(|call| call.step).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn anthropic_stream_joins_to_whole_input() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let mut request = anthropic_request(&json!([{"role": "user", "content": "fix"}]));
    request["stream"] = json!(true);
    let text = send_anthropic_request(&model, &request)
        .await
        .text()
        .await
        .unwrap();
    let events = parse_events(&text);
    let pieces: Vec<&str> = events
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert!(pieces.len() > 3);
    let input: Value = serde_json::from_str(&pieces.concat()).unwrap();
    assert_eq!(input["umlaut"], "äöü");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[tokio::test]
async fn openai_streams_script_calls_and_usage() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let mut request =
        openai_request(&json!([{"role": "system", "content": "s"}, {"role": "user", "content": "fix"}]));
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let text = send_openai_request(&model, &request).await.text().await.unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"));
    let events = parse_events(&text);
    let calls = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str());
    let input: Value = serde_json::from_str(&calls.collect::<String>()).unwrap();
    assert_eq!(input["path"], "a/rather/long/path.py");
    assert!(events.last().unwrap()["usage"]["total_tokens"].as_u64().unwrap() > 0);

    let call = json!({"id": "call_000_0", "type": "function", "function": {"name": "read_file", "arguments": input.to_string()}});
    let messages = json!([
        {"role": "user", "content": "fix"}, {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_000_0", "content": "content of the file"},
    ]);
    let reply: Value = send_openai_request(&model, &openai_request(&messages))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(reply["choices"][0]["message"]["content"], "done");
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn model_refuses_transcripts_that_break_protocol() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let opening = json!({"role": "user", "content": "fix"});
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read_file", "input": {}}]});
    let result = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "content of the file"}]});
    let mut no_limit = anthropic_request(&json!([opening]));
    no_limit.as_object_mut().unwrap().remove("max_tokens");
    let mut no_tool = anthropic_request(&json!([opening]));
    no_tool["tools"] = json!([]);
    let mut unknown_field = anthropic_request(&json!([opening]));
    unknown_field["max_token"] = json!(1);
    let broken = [
        anthropic_request(&json!([opening, call, {"role": "user", "content": "no result"}])),
        anthropic_request(&json!([opening, call, result("b")])),
        anthropic_request(&json!([opening, opening])),
        anthropic_request(&json!([{"role": "user", "content": "something else"}])),
        no_limit,
        no_tool,
        unknown_field,
    ];
    for request in &broken {
        assert_eq!(
            send_anthropic_request(&model, request).await.status(),
            400,
            "{request}"
        );
    }
    let orphan = json!([opening, {"role": "tool", "tool_call_id": "x", "content": "y"}]);
    assert_eq!(
        send_openai_request(&model, &openai_request(&orphan))
            .await
            .status(),
        400
    );
    assert_eq!(model.violations().len(), broken.len() + 1);
    assert_eq!(model.calls().len(), 0);
}

#[tokio::test]
async fn caller_receives_keys_faults_cuts_garbage() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let mut request = anthropic_request(&json!([{"role": "user", "content": "fix"}]));
    let keyless = build_test_client()
        .post(format!("{}/v1/messages", model.url()))
        .json(&request)
        .send()
        .await
        .unwrap();
    assert_eq!(keyless.status(), 401);
    model.fail_next(ServiceFault::new("/v1/messages", 1, 429));
    let limited = send_anthropic_request(&model, &request).await;
    assert_eq!(
        (
            limited.status().as_u16(),
            limited.headers()["retry-after"].to_str().unwrap()
        ),
        (429, "1")
    );
    model.garble_next(1);
    assert!(
        send_anthropic_request(&model, &request)
            .await
            .json::<Value>()
            .await
            .is_err()
    );
    request["stream"] = json!(true);
    model.cut_next(1);
    assert!(
        send_anthropic_request(&model, &request)
            .await
            .text()
            .await
            .is_err()
    );
    assert!(
        send_anthropic_request(&model, &request)
            .await
            .text()
            .await
            .unwrap()
            .contains("message_stop")
    );
}

#[tokio::test]
async fn conversation_gets_script_of_its_marker() {
    let model = ScriptedModel::start(vec![ScriptStep::reply("default")])
        .await
        .unwrap();
    model.set_script("ENG-1", vec![ScriptStep::reply("one")]);
    model.set_script("ENG-12", vec![ScriptStep::reply("twelve")]);
    for (opening, wanted) in [
        ("ticket ENG-12", "twelve"),
        ("ticket ENG-1", "one"),
        ("ticket X", "default"),
    ] {
        let request = anthropic_request(&json!([{"role": "user", "content": opening}]));
        let reply: Value = send_anthropic_request(&model, &request)
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(reply["content"][0]["text"], wanted);
    }
}

#[tokio::test]
async fn oauth_token_requires_beta_without_key() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let body = anthropic_request(&json!([{"role": "user", "content": "please fix it"}]));
    let cases = [
        (Some("oauth-2025-04-20"), None, 200),
        (Some("other-1,oauth-2025-04-20"), None, 200),
        (None, None, 401),
        (Some("oauth-2025-04-20"), Some(MODEL_API_KEY), 401),
    ];
    for (beta, key, status) in cases {
        let mut request = build_test_client()
            .post(format!("{}/v1/messages", model.url()))
            .header("anthropic-version", "2023-06-01")
            .bearer_auth(MODEL_AUTH_TOKEN);
        request = match beta {
            Some(beta) => request.header("anthropic-beta", beta),
            None => request,
        };
        request = match key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        };
        let answer = request.json(&body).send().await.unwrap();
        assert_eq!(answer.status(), status, "{beta:?} {key:?}");
    }
}

#[tokio::test]
async fn changed_or_foreign_thinking_is_refused() {
    let thinking = ScriptStep::call("read_file", json!({"path": "a"})).thinking("Where?");
    let model = ScriptedModel::start(vec![thinking, ScriptStep::reply("done")])
        .await
        .unwrap();
    let opening = json!({"role": "user", "content": "please fix it"});
    let first: Value = send_anthropic_request(&model, &anthropic_request(&json!([opening])))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(first["content"][0]["type"], "thinking");
    let result = json!({"type": "tool_result", "tool_use_id": first["content"][1]["id"], "content": "a"});
    let with = |content: &Value| {
        anthropic_request(
            &json!([opening, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]),
        )
    };
    let mut changed = first["content"].clone();
    changed[0]["thinking"] = json!("Here!");
    assert_eq!(
        send_anthropic_request(&model, &with(&changed)).await.status(),
        400
    );
    let mut elsewhere = with(&first["content"]);
    elsewhere["model"] = json!("another");
    assert_eq!(send_anthropic_request(&model, &elsewhere).await.status(), 400);
    assert_eq!(
        send_anthropic_request(&model, &with(&first["content"]))
            .await
            .status(),
        200
    );
    assert_eq!(model.violations().len(), 2);
}

#[tokio::test]
async fn unsupported_markers_and_schemas_are_refused() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let marked = |first: &Value, second: &Value| {
        let block =
            |text: &str, marker: &Value| json!({"type": "text", "text": text, "cache_control": marker});
        anthropic_request(
            &json!([{"role": "user", "content": [block("please fix", first), block("it", second)]}]),
        )
    };
    let (short, long) = (
        json!({"type": "ephemeral"}),
        json!({"type": "ephemeral", "ttl": "1h"}),
    );
    assert_eq!(
        send_anthropic_request(&model, &marked(&short, &long))
            .await
            .status(),
        400
    );
    assert_eq!(
        send_anthropic_request(&model, &marked(&long, &short))
            .await
            .status(),
        200
    );

    let opening = json!([{"role": "user", "content": "please fix it"}]);
    let open = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let mut closed = open.clone();
    closed["additionalProperties"] = json!(false);
    for (schema, strict, status) in [(&open, false, 400), (&closed, true, 400), (&closed, false, 200)] {
        let mut request = openai_request(&opening);
        request["response_format"] = json!({
            "type": "json_schema", "json_schema": {"name": "verdict", "schema": schema, "strict": strict},
        });
        assert_eq!(
            send_openai_request(&model, &request).await.status(),
            status,
            "{schema}"
        );
    }
}

#[tokio::test]
async fn cache_reads_prefix_of_earlier_marker() {
    let model = ScriptedModel::start(build_reading_script()).await.unwrap();
    let ask = |text: &str| {
        let system = json!([{
            "type": "text", "text": "x".repeat(4000), "cache_control": {"type": "ephemeral", "ttl": "1h"},
        }]);
        let mut request = anthropic_request(&json!([{"role": "user", "content": text}]));
        request["system"] = system;
        request
    };
    let mut usages = Vec::new();
    for text in ["please fix it", "fix something else"] {
        let reply: Value = send_anthropic_request(&model, &ask(text))
            .await
            .json()
            .await
            .unwrap();
        usages.push(reply["usage"].clone());
    }
    assert_eq!(usages[0]["cache_read_input_tokens"], 0);
    assert_eq!(
        usages[0]["cache_creation"]["ephemeral_1h_input_tokens"],
        usages[0]["cache_creation_input_tokens"]
    );
    assert!(usages[0]["cache_creation_input_tokens"].as_u64().unwrap() >= 1000);
    assert_eq!(
        usages[1]["cache_read_input_tokens"],
        usages[0]["cache_creation_input_tokens"]
    );
    assert_eq!(usages[1]["cache_creation_input_tokens"], 0);
}
