//! Pull requests that callers of the API ask for.

use e2e::{Options, World};
use journeyman::api::{Asked, Client};
use serde_json::{Value, json};
use testkit::{fixture::REPOSITORY, github::WRITER_LOGIN};

const BRANCH: &str = "feature/ENG-1-login";

async fn answer(client: &Client, world: &World, request: &Value, key: &str) -> Value {
    let asked = client.ask_pull_request(request, Some(key)).await.unwrap();
    let Asked::Taken(call) = asked else {
        panic!("refused: {asked:?}")
    };
    assert_eq!(call.id, key);
    let answered = world.until("an answer", async || {
        client.pull_request_call(key).await.ok()?.answer
    });
    answered.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_github_has_becomes_a_linked_pull_request_once_and_its_issue_moves_to_review() {
    let world = World::start(Options::default()).await.unwrap();
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
    let first = answer(client, &world, &request, "ci-1").await;
    assert_eq!(
        (&first["status"], &first["errors"]),
        (&json!("success"), &json!([])),
        "{first}"
    );
    assert_eq!(first["jira_status"]["linked"], true);
    assert_eq!(first["jira_status"]["transitioned"], true, "{first}");
    assert_eq!(first["marked_ready"], true);
    let again = answer(client, &world, &request, "ci-1").await;
    assert_eq!(again, first, "the same key has the same answer");
    let other = answer(client, &world, &request, "ci-2").await;
    assert_eq!(other["pr_number"], first["pr_number"], "it is found again");

    let pulls = world.github.pull_requests(REPOSITORY);
    assert_eq!(pulls.len(), 1);
    assert!(!pulls[0].draft && pulls[0].author == WRITER_LOGIN, "{pulls:#?}");
    assert_eq!(world.jira.remote_links(&key).len(), 1);
    assert_eq!(world.jira.status(&key).as_deref(), Some("In Review"));

    let changed = json!({
        "repository": REPOSITORY, "branch": BRANCH, "title": "Another title", "description": "A form and its test",
    });
    let refused = client.ask_pull_request(&changed, Some("ci-1")).await.unwrap_err();
    assert!(refused.to_string().contains("another request"), "{refused}");
    assert_eq!(world.github.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_become_a_pull_request_is_answered_with_the_reason() {
    let world = World::start(Options::default()).await.unwrap();
    let client = &world.client;
    let wrong = json!({"repository": REPOSITORY, "branch": BRANCH, "title": "Fix", "description": "A form and its test"});
    let refused = client.ask_pull_request(&wrong, None).await.unwrap();
    let Asked::Refused(said) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(said["errors"][0]["context"]["field"], "title", "{said}");

    let with = |repository: &str| json!({"repository": repository, "branch": BRANCH, "title": "Add a login", "description": "A form and its test"});
    let missing = answer(client, &world, &with(REPOSITORY), "missing").await;
    assert_eq!(missing["errors"][0]["type"], "branch_not_found", "{missing}");
    let unknown = answer(client, &world, &with("acme/secret"), "unknown").await;
    assert_eq!(
        unknown["errors"][0]["context"]["field"], "repository",
        "{unknown}"
    );
    assert!(world.github.pull_requests(REPOSITORY).is_empty());
    world.stop().await.unwrap();
}
