//! The published schemas against what the code takes and gives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

use pullrequest::{Answer, IssueSeen, Kind, Problem, parse, parse_at_github};
use serde_json::{Value, json};

const INPUT: &str = include_str!("../../../docs/schemas/pull-request-input.schema.json");
const API_INPUT: &str = include_str!("../../../docs/schemas/pull-request-api-input.schema.json");
const OUTPUT: &str = include_str!("../../../docs/schemas/pull-request-output.schema.json");

/// What is wrong with a value, after checking the schema itself against draft-07.
fn complaints(schema: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["$comment"], "version 1.0");
    let validator = jsonschema::draft7::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    validator
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect()
}

fn full_input() -> Value {
    json!({
        "branch": "feature/ENG-4-login",
        "base_branch": "develop",
        "title": "Add a login form",
        "description": "## Summary\nA form and its test",
        "jira_key": "ENG-4",
        "mark_ready": true,
        "draft": false,
        "working_directory": "/work/shop",
    })
}

#[test]
fn schema_and_code_take_the_same_requests() {
    let without = |field: &str| {
        let mut input = full_input();
        input.as_object_mut().unwrap().remove(field);
        input
    };
    let with = |field: &str, value: Value| {
        let mut input = full_input();
        input[field] = value;
        input
    };
    let table = [
        (full_input(), true),
        (without("base_branch"), true),
        (without("jira_key"), true),
        (without("mark_ready"), true),
        (without("draft"), true),
        (with("jira_key", Value::Null), true),
        (without("branch"), false),
        (without("title"), false),
        (without("description"), false),
        (without("working_directory"), false),
        (with("branch", json!("")), false),
        (with("base_branch", json!("")), false),
        (with("title", json!("Fix")), false),
        (with("description", json!("short")), false),
        (with("jira_key", json!("eng-4")), false),
        (with("jira_key", json!(4)), false),
        (with("mark_ready", json!("yes")), false),
        (with("draft", Value::Null), false),
        (with("working_directory", json!("")), false),
        (json!([]), false),
    ];
    for (input, is_valid) in table {
        let said = complaints(INPUT, &input);
        assert_eq!(said.is_empty(), is_valid, "{input}: {said:?}");
        assert_eq!(parse(&input, |_| true).is_ok(), is_valid, "{input}");
    }
}

#[test]
fn the_api_takes_the_same_requests_with_a_repository_in_the_place_of_the_folder() {
    let mut usual = full_input();
    usual.as_object_mut().unwrap().remove("working_directory");
    usual["repository"] = json!("acme/shop");
    let with = |field: &str, value: Value| {
        let mut input = usual.clone();
        input[field] = value;
        input
    };
    let table = [
        (usual.clone(), true),
        (with("repository", json!("ghe:acme/shop")), true),
        (with("transition", json!("Peer Review")), true),
        (with("repository", json!("shop")), false),
        (with("repository", Value::Null), false),
        (with("title", json!("Fix")), false),
        (with("transition", json!(3)), false),
        (json!([]), false),
    ];
    for (input, is_valid) in table {
        let said = complaints(API_INPUT, &input);
        assert_eq!(said.is_empty(), is_valid, "{input}: {said:?}");
        assert_eq!(parse_at_github(&input).is_ok(), is_valid, "{input}");
    }
}

#[test]
fn every_answer_follows_the_schema() {
    let none = Answer::failed(vec![
        Problem::new(Kind::ValidationError, "wrong").about_field("title"),
    ]);
    let issue = IssueSeen::There {
        status: "In Progress".to_owned(),
        offered: Vec::new(),
    };
    let mut partial = Answer::opened(7, "https://github.example/acme/shop/pull/7", &issue);
    for kind in Kind::ALL {
        let problem = Problem::new(kind, "it did not work")
            .about_branch("feature/login")
            .about_issue("ENG-4")
            .offering(vec!["Done".to_owned()])
            .saying("said")
            .after(kind.retries());
        partial.without_jira(problem);
    }
    let plain = Answer::opened(7, "https://github.example/acme/shop/pull/7", &IssueSeen::NotAsked);
    for answer in [&none, &partial, &plain] {
        let value = serde_json::to_value(answer).unwrap();
        assert!(
            complaints(OUTPUT, &value).is_empty(),
            "{value}: {:?}",
            complaints(OUTPUT, &value)
        );
        assert_eq!(&serde_json::from_value::<Answer>(value).unwrap(), answer);
    }
    assert_eq!(partial.jira_status.error.as_deref(), Some("said"));
    let broken = json!({"status": "done"});
    assert!(!complaints(OUTPUT, &broken).is_empty());
}

#[test]
fn the_schema_names_every_type_of_error_and_no_other() {
    let schema: Value = serde_json::from_str(OUTPUT).unwrap();
    let listed = &schema["properties"]["errors"]["items"]["properties"]["type"]["enum"];
    assert_eq!(*listed, serde_json::to_value(Kind::ALL).unwrap());
}

#[test]
fn what_may_pass_is_tried_again() {
    let retried: Vec<(Kind, u32)> = Kind::ALL
        .into_iter()
        .map(|kind| (kind, kind.retries()))
        .filter(|(_, retries)| *retries > 0)
        .collect();
    assert_eq!(
        retried,
        [
            (Kind::PrCreationFailed, 3),
            (Kind::JiraLinkFailed, 2),
            (Kind::MarkReadyFailed, 2),
            (Kind::GitPushFailed, 3),
        ]
    );
}
