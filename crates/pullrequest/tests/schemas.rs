//! Published schemas against the requests and answers of the code. Beside `src/`, whose files do no I/O.

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use crate::{
    BranchHeads, CallProblem, DryRunAnswer, ObservedIssue, ObservedState, ProblemKind, ProtocolAnswer,
    parse_github_request, parse_request, plan_writes,
};

const INPUT: &str = include_str!("../../../docs/schemas/pull-request-input.schema.json");
const API_INPUT: &str = include_str!("../../../docs/schemas/pull-request-api-input.schema.json");
const OUTPUT: &str = include_str!("../../../docs/schemas/pull-request-output.schema.json");

const DRY_RUN: &str = include_str!("../../../docs/schemas/pull-request-dry-run.schema.json");
// Version 1.0 of the protocol that other tools implement, verbatim: its schemas and examples.
const PROTOCOL_INPUT: &str = include_str!("protocol/input.schema.json");
const PROTOCOL_OUTPUT: &str = include_str!("protocol/output.schema.json");

fn read_examples(folder: &str) -> Vec<(String, Value)> {
    let folder = format!("{}/tests/protocol/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let read = files.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.display().to_string(), serde_json::from_str(&text).unwrap())
    });
    read.collect()
}

/// Lists the violations of a value against one of our schemas, after a check of the schema's version.
fn list_violations(schema: &str, value: &Value) -> Vec<String> {
    let versioned: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(versioned["$comment"], "version 1.0");
    complaints_of_any(schema, value)
}

/// Lists the violations of a value against a schema, after a check of the schema against draft-07.
fn complaints_of_any(schema: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let mut compiler = Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("schema.json", schema).unwrap();
    let mut schemas = Schemas::new();
    let compiled = compiler.compile("schema.json", &mut schemas).unwrap();
    match schemas.validate(value, compiled) {
        Ok(()) => Vec::new(),
        Err(error) => vec![error.to_string()],
    }
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
        (with("transition_fields", json!({"Reviewer": "ada"})), true),
        (with("transition_fields", json!({"Reviewer": 3})), false),
        (with("transition_fields", json!({"Reviewer": ""})), false),
        (with("transition_fields", json!({"": "ada"})), false),
        (with("transition_fields", json!("ada")), false),
        (with("dry_run", json!(true)), true),
        (with("dry_run", json!(1)), false),
        (json!([]), false),
    ];
    for (input, is_valid) in table {
        let said = list_violations(INPUT, &input);
        assert_eq!(said.is_empty(), is_valid, "{input}: {said:?}");
        assert_eq!(parse_request(&input, |_| true).is_ok(), is_valid, "{input}");
    }
}

#[test]
fn api_requests_take_repository_instead_of_folder() {
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
        let said = list_violations(API_INPUT, &input);
        assert_eq!(said.is_empty(), is_valid, "{input}: {said:?}");
        assert_eq!(parse_github_request(&input).is_ok(), is_valid, "{input}");
    }
}

#[test]
fn every_answer_follows_the_schema() {
    let none = ProtocolAnswer::failed(vec![
        CallProblem::new(ProblemKind::ValidationError, "wrong").about_field("title"),
    ]);
    let issue = ObservedIssue::There {
        status: "In Progress".to_owned(),
        offered: Vec::new(),
    };
    let mut partial = ProtocolAnswer::opened(7, "https://github.example/acme/shop/pull/7", &issue);
    for kind in ProblemKind::ALL {
        let problem = CallProblem::new(*kind, "it did not work")
            .about_branch("feature/login")
            .about_issue("ENG-4")
            .offering(vec!["Done".to_owned()])
            .with_error_output("said")
            .after(kind.retries());
        partial.without_jira(problem);
    }
    let plain = ProtocolAnswer::opened(
        7,
        "https://github.example/acme/shop/pull/7",
        &ObservedIssue::NotAsked,
    );
    for answer in [&none, &partial, &plain] {
        let value = serde_json::to_value(answer).unwrap();
        assert!(
            list_violations(OUTPUT, &value).is_empty(),
            "{value}: {:?}",
            list_violations(OUTPUT, &value)
        );
        assert_eq!(&serde_json::from_value::<ProtocolAnswer>(value).unwrap(), answer);
    }
    assert_eq!(partial.jira_status.error.as_deref(), Some("said"));
    let broken = json!({"status": "done"});
    assert!(!list_violations(OUTPUT, &broken).is_empty());
}

#[test]
fn protocol_examples_round_trip() {
    let inputs = read_examples("inputs");
    assert_eq!(inputs.len(), 4);
    for (name, input) in inputs {
        assert_eq!(
            complaints_of_any(PROTOCOL_INPUT, &input),
            Vec::<String>::new(),
            "{name}"
        );
        assert_eq!(list_violations(INPUT, &input), Vec::<String>::new(), "{name}");
        let request =
            parse_request(&input, |_| true).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(request.title, input["title"], "{name}");
        assert_eq!(request.description, input["description"], "{name}");
        assert_eq!(request.jira_key.as_deref(), input["jira_key"].as_str(), "{name}");
        assert_eq!(request.draft, input["draft"] != false, "{name}");
        assert_eq!(
            request.base_branch,
            input["base_branch"].as_str().unwrap_or("main"),
            "{name}"
        );
    }
    let outputs = read_examples("outputs");
    assert_eq!(outputs.len(), 8);
    for (name, output) in outputs {
        assert_eq!(list_violations(OUTPUT, &output), Vec::<String>::new(), "{name}");
        let answer: ProtocolAnswer = serde_json::from_value(output.clone()).unwrap();
        assert_eq!(
            serde_json::to_value(answer).unwrap(),
            output,
            "{name}: nothing of it is lost"
        );
    }
}

#[test]
fn answers_and_error_types_follow_protocol() {
    let schema: Value = serde_json::from_str(PROTOCOL_OUTPUT).unwrap();
    let types = &schema["properties"]["errors"]["items"]["properties"]["type"]["enum"];
    assert_eq!(*types, serde_json::to_value(ProblemKind::ALL).unwrap());
    let mut answer = ProtocolAnswer::opened(
        7,
        "https://github.example/acme/shop/pull/7",
        &ObservedIssue::NotAsked,
    );
    for kind in ProblemKind::ALL {
        let problem = CallProblem::new(*kind, "it did not work").about_issue("ENG-4");
        answer.without_jira(
            problem
                .offering(vec!["Done".to_owned()])
                .with_error_output("said"),
        );
    }
    for answer in [answer, ProtocolAnswer::failed(Vec::new())] {
        let value = serde_json::to_value(&answer).unwrap();
        // The protocol's schema permits null for an absent pull request, but its format applies to strings
        // only.
        assert_eq!(
            complaints_of_any(PROTOCOL_OUTPUT, &value),
            Vec::<String>::new(),
            "{value}"
        );
    }
}

#[test]
fn dry_run_answer_follows_schema() {
    let mut input = full_input();
    input["transition_fields"] = json!({"Reviewer": "ada"});
    let request = parse_request(&input, |_| true).unwrap();
    let offered = crate::transition::OfferedTransition {
        id: "31".to_owned(),
        name: "Code Review".to_owned(),
        leads_to: "In Review".to_owned(),
        fields: 1,
    };
    let seen = ObservedState {
        heads: BranchHeads {
            local: Some("a".repeat(40).parse().unwrap()),
            remote: None,
            is_forward: true,
        },
        open: None,
        issue: ObservedIssue::There {
            status: "To Do".to_owned(),
            offered: vec![offered],
        },
    };
    let look = DryRunAnswer::from(plan_writes(&request, &seen, &[], None).unwrap());
    let value = serde_json::to_value(&look).unwrap();
    assert_eq!(list_violations(DRY_RUN, &value), Vec::<String>::new(), "{value}");
    let writes: Vec<&str> = look
        .would_write
        .iter()
        .filter_map(|step| step["write"].as_str())
        .collect();
    assert_eq!(
        writes,
        ["push_branch", "open_pull_request", "link_issue", "move_issue"]
    );
    assert_eq!(look.would_write[3]["fields"], json!({"Reviewer": "ada"}));
}

#[test]
fn schema_lists_exactly_all_error_types() {
    let schema: Value = serde_json::from_str(OUTPUT).unwrap();
    let listed = &schema["properties"]["errors"]["items"]["properties"]["type"]["enum"];
    assert_eq!(*listed, serde_json::to_value(ProblemKind::ALL).unwrap());
}

#[test]
fn what_may_pass_is_tried_again() {
    let retried: Vec<(ProblemKind, u32)> = ProblemKind::ALL
        .iter()
        .map(|kind| (*kind, kind.retries()))
        .filter(|(_, retries)| *retries > 0)
        .collect();
    assert_eq!(
        retried,
        [
            (ProblemKind::PrCreationFailed, 3),
            (ProblemKind::JiraLinkFailed, 2),
            (ProblemKind::MarkReadyFailed, 2),
            (ProblemKind::GitPushFailed, 3),
        ]
    );
}
