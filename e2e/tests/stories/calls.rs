//! Pull requests that API callers request.

use api::{Client, PullRequestSubmission};
use e2e::{Options, TestWorld};
use serde_json::{Value, json};
use testkit::{JiraOptions, ServiceFault, fixture::REPOSITORY, github::WRITER_LOGIN, jira::JiraTransition};

use crate::start_default_world;

const BRANCH: &str = "feature/ENG-1-login";

async fn await_call_answer(client: &Client, world: &TestWorld, request: &Value, key: &str) -> Value {
    let asked = client.pull_requests().request(request, Some(key)).await.unwrap();
    let PullRequestSubmission::Taken(call) = asked else {
        panic!("refused: {asked:?}")
    };
    assert_eq!(call.id, key);
    let answered = world.until("an answer", async || {
        client.pull_requests().read(key).await.ok()?.answer
    });
    answered.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn call_opens_linked_pull_request_once() {
    let world = start_default_world().await;
    let key = world.file_ticket();
    let files = [("login.py", "def login(): ...\n")];
    world
        .github
        .commit(REPOSITORY, BRANCH, "Add a login", &files)
        .unwrap();
    let request = json!({
        "repository": REPOSITORY, "branch": BRANCH, "title": "Add a login form",
        "description": "A form and its test", "jira_key": key, "mark_ready": true,
    });
    let client = &world.client;
    let first = await_call_answer(client, &world, &request, "ci-1").await;
    assert_eq!(
        (&first["status"], &first["errors"]),
        (&json!("success"), &json!([])),
        "{first}"
    );
    assert_eq!(first["jira_status"]["linked"], true);
    assert_eq!(first["jira_status"]["transitioned"], true, "{first}");
    assert_eq!(first["marked_ready"], true);
    let again = await_call_answer(client, &world, &request, "ci-1").await;
    assert_eq!(again, first, "the same key has the same answer");
    let other = await_call_answer(client, &world, &request, "ci-2").await;
    assert_eq!(other["pr_number"], first["pr_number"], "it is found again");

    let pulls = world.github.pull_requests(REPOSITORY);
    assert_eq!(pulls.len(), 1);
    assert!(!pulls[0].draft && pulls[0].author == WRITER_LOGIN, "{pulls:#?}");
    assert_eq!(world.jira.remote_links(&key).len(), 1);
    assert_eq!(world.jira.status(&key).as_deref(), Some("In Review"));

    let changed = json!({
        "repository": REPOSITORY, "branch": BRANCH, "title": "Another title", "description": "A form and its test",
    });
    let refused = client
        .pull_requests()
        .request(&changed, Some("ci-1"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("another request"), "{refused}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_call_is_answered_with_reason() {
    let world = start_default_world().await;
    let client = &world.client;
    let wrong = json!({"repository": REPOSITORY, "branch": BRANCH, "title": "Fix", "description": "A form and its test"});
    let refused = client.pull_requests().request(&wrong, None).await.unwrap();
    let PullRequestSubmission::Refused(said) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(said["errors"][0]["context"]["field"], "title", "{said}");

    let with = |repository: &str| json!({"repository": repository, "branch": BRANCH, "title": "Add a login", "description": "A form and its test"});
    let missing = await_call_answer(client, &world, &with(REPOSITORY), "missing").await;
    assert_eq!(missing["errors"][0]["type"], "branch_not_found", "{missing}");
    let unknown = await_call_answer(client, &world, &with("acme/secret"), "unknown").await;
    assert_eq!(
        unknown["errors"][0]["context"]["field"], "repository",
        "{unknown}"
    );
    assert!(world.github.pull_requests(REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

fn build_transition(name: &str, to: &str, asks_for: &[&str]) -> JiraTransition {
    JiraTransition {
        name: name.to_owned(),
        to: to.to_owned(),
        asks_for: asks_for.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Starts a world with these transitions, an issue and a branch for it.
async fn with_branch(
    named: Vec<JiraTransition>,
    settings: Vec<(&'static str, String)>,
) -> (TestWorld, String) {
    let jira = JiraOptions {
        named,
        ..JiraOptions::default()
    };
    let world = TestWorld::start(Options {
        jira,
        settings,
        ..Options::default()
    });
    let world = world.await.unwrap();
    let key = world.file_ticket();
    let files = [("login.py", "def login(): ...\n")];
    let committed = world.github.commit(REPOSITORY, BRANCH, "Add a login", &files);
    committed.unwrap();
    (world, key)
}

fn build_call_request(key: &str, more: &[(&str, Value)]) -> Value {
    let mut request = json!({"repository": REPOSITORY, "branch": BRANCH, "title": "Add a login form",
        "description": "A form and its test", "jira_key": key});
    for (field, value) in more {
        request[field] = value.clone();
    }
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn jira_failure_leaves_called_pull_request() {
    let moves = vec![
        build_transition("Block", "In Progress", &[]),
        build_transition("Finish", "Done", &[]),
    ];
    let (world, key) = with_branch(moves, Vec::new()).await;
    let client = &world.client;
    let unknown = await_call_answer(client, &world, &build_call_request("ENG-999", &[]), "unknown").await;
    assert_eq!(
        (&unknown["status"], &unknown["errors"][0]["type"]),
        (&json!("success"), &json!("jira_issue_not_found")),
        "{unknown}"
    );
    world
        .jira
        .fail_next(ServiceFault::new("/remotelink", 3, 502).on("POST"));
    world
        .jira
        .fail_next(ServiceFault::new("/comment", 1, 400).on("POST"));
    let answer = await_call_answer(client, &world, &build_call_request(&key, &[]), "no-link").await;
    let errors = answer["errors"].as_array().unwrap();
    let types: Vec<&str> = errors
        .iter()
        .map(|error| error["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["jira_link_failed", "jira_transition_failed"], "{answer}");
    assert_eq!(errors[0]["context"]["retries"], 2);
    assert_eq!(
        errors[1]["context"]["available_transitions"],
        json!(["Block", "Finish"])
    );
    assert_eq!(
        answer["jira_status"],
        json!({"linked": false, "transitioned": false, "current_state": "To Do",
            "error": errors[0]["context"]["error_output"]}),
        "{answer}"
    );
    assert_eq!(world.github.pull_requests(REPOSITORY).len(), 1);
    assert!(world.jira.comments(&key).is_empty() && world.jira.remote_links(&key).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_transition_choice_fills_required_fields() {
    let moves = vec![
        build_transition("Peer Review", "In Progress", &[]),
        build_transition("Design Review", "In Review", &["Reviewer"]),
    ];
    let (world, key) = with_branch(moves, Vec::new()).await;
    let client = &world.client;
    let ambiguous = await_call_answer(client, &world, &build_call_request(&key, &[]), "ambiguous").await;
    assert_eq!(
        ambiguous["errors"][0]["type"], "jira_transition_ambiguous",
        "{ambiguous}"
    );
    assert_eq!(ambiguous["jira_status"]["linked"], true);
    assert_eq!(world.jira.status(&key).as_deref(), Some("To Do"));
    let choice = ("transition", json!("Design Review"));
    let bare = await_call_answer(
        client,
        &world,
        &build_call_request(&key, std::slice::from_ref(&choice)),
        "bare",
    )
    .await;
    assert_eq!(bare["errors"][0]["type"], "jira_transition_failed", "{bare}");
    assert_eq!(world.jira.status(&key).as_deref(), Some("To Do"));
    let filled = ("transition_fields", json!({"Reviewer": "ada"}));
    let done = await_call_answer(
        client,
        &world,
        &build_call_request(&key, &[choice, filled]),
        "done",
    )
    .await;
    assert_eq!(
        (&done["jira_status"]["current_state"], &done["errors"]),
        (&json!("In Review"), &json!([])),
        "{done}"
    );
    assert_eq!(world.jira.status(&key).as_deref(), Some("In Review"));
    assert_eq!(world.github.pull_requests(REPOSITORY).len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reporter_acronym_setting_means_code_review() {
    let moves = vec![
        build_transition("Finish", "Done", &[]),
        build_transition("To CR", "In Progress", &[]),
    ];
    let settings = vec![("REPORTER__REVIEW_ACRONYMS", "ICR,CR".to_owned())];
    let (world, key) = with_branch(moves, settings).await;
    let answer = await_call_answer(&world.client, &world, &build_call_request(&key, &[]), "acronym").await;
    assert_eq!(answer["errors"], json!([]), "{answer}");
    assert_eq!(world.jira.status(&key).as_deref(), Some("In Progress"));
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn called_dry_run_writes_nothing() {
    let moves = vec![build_transition("Code Review", "In Review", &[])];
    let (world, key) = with_branch(moves, Vec::new()).await;
    let request = build_call_request(&key, &[("dry_run", json!(true)), ("mark_ready", json!(true))]);
    let preview = await_call_answer(&world.client, &world, &request, "preview").await;
    assert_eq!(
        (&preview["dry_run"], &preview["errors"]),
        (&json!(true), &json!([])),
        "{preview}"
    );
    let steps = preview["would_write"].as_array().unwrap();
    let writes: Vec<&str> = steps.iter().map(|step| step["write"].as_str().unwrap()).collect();
    assert_eq!(
        writes,
        ["open_pull_request", "mark_ready", "link_issue", "move_issue"],
        "{preview}"
    );
    assert!(world.github.pull_requests(REPOSITORY).is_empty());
    assert_eq!(world.jira.status(&key).as_deref(), Some("To Do"));
    assert!(world.jira.remote_links(&key).is_empty() && world.jira.comments(&key).is_empty());
    world.stop().await.unwrap();
}

/// The crash happens after the pull request is open and before the caller gets the answer.
#[tokio::test(flavor = "multi_thread")]
async fn second_reporter_completes_crashed_call_once() {
    let moves = vec![build_transition("Code Review", "In Review", &[])];
    let (world, key) = with_branch(moves, Vec::new()).await;
    let opened = world.github.open_pull_request_as(
        REPOSITORY,
        WRITER_LOGIN,
        BRANCH,
        "Add a login form",
        "A form and its test",
    );
    let opened = opened.unwrap();
    let calls = world.queue_as("reporter").await.unwrap().pull_request_calls();
    let six_minutes_ago = bootstrap::read_wall_clock().plus_ms(-6 * 60 * 1000);
    let taken = calls.take("ci-1", six_minutes_ago).await.unwrap();
    assert!(matches!(taken, queue::CallClaim::Ours(_)), "{taken:?}");
    let recent = calls.take("ci-2", bootstrap::read_wall_clock()).await.unwrap();
    assert!(matches!(recent, queue::CallClaim::Ours(_)), "{recent:?}");

    let other = world
        .client
        .pull_requests()
        .request(&build_call_request(&key, &[]), Some("ci-2"))
        .await
        .unwrap();
    assert!(matches!(other, PullRequestSubmission::Taken(_)), "{other:?}");
    let answer = await_call_answer(&world.client, &world, &build_call_request(&key, &[]), "ci-1").await;
    assert_eq!(
        (&answer["status"], &answer["pr_number"], &answer["errors"]),
        (&json!("success"), &json!(opened), &json!([])),
        "{answer}"
    );
    assert_eq!(world.github.pull_requests(REPOSITORY).len(), 1);
    assert_eq!(world.jira.remote_links(&key).len(), 1);
    assert_eq!(world.jira.status(&key).as_deref(), Some("In Review"));
    let still = world.client.pull_requests().read("ci-2").await.unwrap();
    assert_eq!(still.answer, None, "whoever has it may still be alive");
    world.stop().await.unwrap();
}
