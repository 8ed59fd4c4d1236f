//! Channels that other stories do not use: a single CI event, polls alone, an edit during a triage.

use std::time::Duration;

use domain::StopReason;
use e2e::{Options, TestWorld, WEBHOOK_SECRET};
use serde_json::{Value, json};
use testkit::{ScriptStep, ServiceFault, fixture, fixture::REPOSITORY, github::RunConclusion};

use crate::{
    build_polled_options, comment_with, complete_ticket, end_of, only_pull_request, start_world_with_rules,
    start_world_with_settings,
};

// URL without a listener.
const NOWHERE: &str = "http://127.0.0.1:1/nowhere";

/// Plays a ticket to its draft and delivers one CI event. Neither polls nor other webhooks report the checks.
async fn ready_after(event: &str, body: impl Fn(&str, &str) -> Value) {
    let world = start_world_with_settings(&[("INGEST__POLL_INTERVAL_S", "3600")]).await;
    let key = complete_ticket(&world).await;
    world.github.set_webhook(NOWHERE, WEBHOOK_SECRET);
    let pull = only_pull_request(&world);
    let green = [("test", RunConclusion::Success, "")];
    world
        .github
        .run_checks(REPOSITORY, &pull.head_sha, &green)
        .unwrap();
    let mut body = body(&pull.head_sha, &pull.head);
    body["repository"] = json!({"full_name": REPOSITORY});
    let status = world.deliver("github", event, &body.to_string()).await.unwrap();
    assert!((200..300).contains(&status), "{event}: {status}");
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed, "{event}");
    assert!(!only_pull_request(&world).draft, "{event}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn single_ci_event_completes_checks() {
    ready_after("check_suite", |head, branch| {
        json!({"action": "completed", "check_suite": {"head_sha": head, "head_branch": branch}})
    })
    .await;
    ready_after("workflow_run", |head, branch| {
        json!({"action": "completed", "workflow_run": {"head_sha": head, "head_branch": branch}})
    })
    .await;
    ready_after(
        "status",
        |head, branch| json!({"sha": head, "state": "success", "branches": [{"name": branch}]}),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_push_review_and_close() {
    let world = TestWorld::start(build_polled_options()).await.unwrap();
    let key = complete_ticket(&world).await;
    let pull = only_pull_request(&world);
    let note = [("notes/person.md", "By a person.\n")];
    world
        .github
        .commit(REPOSITORY, &pull.head, "Add a note of mine", &note)
        .unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    comment_with(&world, &key, "It is a draft until the checks of that commit pass").await;

    let comment = world.github.next_id() + 1;
    let finish = json!({"type": "fix", "title": "Answer the question", "summary": "Nothing had to be changed.",
        "replies": [{"id": comment, "disposition": "answered", "reply": "It is a percentage."}]});
    let script = vec![ScriptStep::call("finish", finish)];
    world
        .model
        .set_script_of("A review of the pull request", "", script);
    let lines = [("shop/cart.py", 4, "Why is the discount last?")];
    world
        .github
        .review_lines(REPOSITORY, pull.number, "rita", ("commented", ""), &lines)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let replies = world.github.replies(REPOSITORY, pull.number, comment).unwrap();
    assert_eq!(replies.len(), 1, "{replies:#?}");

    world.github.close(REPOSITORY, pull.number, "grace").unwrap();
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    comment_with(&world, &key, "closed pull request").await;
    let runs = world
        .client
        .runs()
        .recent(Some(&domain::TicketKey::jira(&key).unwrap()))
        .await;
    assert_eq!(runs.unwrap().len(), 4, "each once");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_returned_ticket() {
    let input =
        json!({"kind": "already_done", "evidence": "shop/cart.py line 27 multiplies by the quantity."});
    let world = TestWorld::start(Options {
        script: Some(vec![ScriptStep::call("give_up", input)]),
        ..build_polled_options()
    });
    let world = world.await.unwrap();
    let key = world.ask().unwrap();
    let given_up = end_of(&world, &key, 0).await;
    assert!(matches!(given_up, StopReason::GivenUp { .. }), "{given_up:?}");
    comment_with(&world, &key, "Nothing has to be changed").await;
    world.model.set_script("", fixture::build_shop_script());
    world.jira.move_issue(&key, "To Do", "ada").unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    assert!(only_pull_request(&world).open);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_edit_restarts_triage_with_new_text() {
    let labels = |label: &str| ScriptStep::call("submit_triage", json!({"labels": [label]}));
    let world = TestWorld::start(Options {
        rules: "triage:\n  labels: [bug, docs]\n".to_owned(),
        script: Some(vec![labels("bug")]),
        ..Options::default()
    });
    let world = world.await.unwrap();
    // The model gives no answer about the first text within the story.
    let held = ServiceFault::new("", 1, 503).held(Duration::from_secs(600));
    world.model.fail_next(held);
    let number = world
        .github
        .open_issue_as(REPOSITORY, "rita", "The total", "It is wrong.")
        .unwrap();
    let ticket = format!("github:{REPOSITORY}#{number}");
    world.run(&ticket, 0).await.unwrap();
    let docs = vec![labels("docs").expecting("The page on totals")];
    world.model.set_script_of("Sort this ticket", "", docs);
    world
        .github
        .edit_issue_as(
            REPOSITORY,
            number,
            "rita",
            None,
            Some("The page on totals is wrong."),
        )
        .unwrap();
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Superseded);
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    let issue = world.github.issue(REPOSITORY, number).unwrap();
    assert_eq!(issue.labels, ["docs", "triaged"]);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_is_refused_where_issues_are_forbidden() {
    let world = start_world_with_rules("discussions:\n  enabled: true\n  research: false\n").await;
    let text = ("How do we round?", "Is the total of an invoice rounded?");
    let number = world
        .github
        .start_discussion(REPOSITORY, "rita", "Ideas", text)
        .unwrap();
    world
        .github
        .discuss_as(REPOSITORY, number, "rita", "/plan", None)
        .unwrap();
    let refusal = world.until("the refusal", async || {
        let said = world.github.discussion(REPOSITORY, number).ok()?.comments;
        said.into_iter()
            .find(|said| said.body.contains("issues.most_planned"))
    });
    let refusal = refusal.await.unwrap();
    assert_eq!(refusal.author, testkit::github::WRITER_LOGIN);
    assert!(world.github.issues(REPOSITORY).is_empty());
    assert!(world.model.calls_of("Plan what follows").is_empty());
    world.stop().await.unwrap();
}
