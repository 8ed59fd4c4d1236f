//! The rules block of `docs/start/whole-loop.md`, read from the page: every job that it turns on.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{
    ScriptStep,
    fixture::{PROJECT, REPOSITORY},
    github::{RunConclusion, WRITER_LOGIN},
};

use crate::{AGENT, end_of, only_pull_request, open_issue};

const PAGE: &str = include_str!("../../../docs/start/whole-loop.md");

/// Returns the first YAML block of the page.
fn read_documented_rules() -> String {
    let (_, block) = PAGE.split_once("```yaml\n").unwrap();
    let (rules, _) = block.split_once("```").unwrap();
    let (owner, name) = REPOSITORY.split_once('/').unwrap();
    assert!(
        rules.contains(&format!("owner: {owner}, name: {name}"))
            && rules.contains(&format!("project_key: {PROJECT}")),
        "the block is for the repository and project of the stories: {rules}"
    );
    rules.to_owned()
}

async fn start_documented_world() -> TestWorld {
    let options = Options {
        more_rules: vec![("shop.yaml", read_documented_rules())],
        settings: vec![("INGEST__POLL_INTERVAL_S", "1".to_owned())],
        ..Options::default()
    };
    let world = TestWorld::start(options).await.unwrap();
    let labels = ScriptStep::call("submit_triage", json!({"labels": ["bug"]}));
    world.model.set_script_of("Sort this ticket", "", vec![labels]);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_rules_follow_ticket_to_reminder() {
    let world = start_documented_world().await;
    let key = world.file_ticket();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert_eq!(world.jira.labels(&key), ["bug", "triaged"]);

    world.ask_for_work(&key).unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(pull.draft, "{pull:#?}");
    let checks = [("test", RunConclusion::Success, "")];
    world
        .github
        .run_checks(REPOSITORY, &pull.head_sha, &checks)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    assert!(!only_pull_request(&world).draft);

    world
        .github
        .ask_for_review_days_ago(REPOSITORY, pull.number, "rita", "grace", 3)
        .unwrap();
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    let reminder = async || {
        let comments = world.github.comments(REPOSITORY, pull.number).into_iter();
        let is_reminder =
            |text: &str| text.contains("has waited for a review since") && text.contains("@rita");
        comments
            .map(|comment| comment.body)
            .find(|text| is_reminder(text))
    };
    world.until("a reminder", reminder).await.unwrap();

    world.github.merge(REPOSITORY, pull.number, "grace").unwrap();
    assert_eq!(end_of(&world, &key, 4).await, StopReason::Completed);
    let done = async || (world.jira.status(&key).as_deref() == Some("Done")).then_some(());
    world.until("the ticket Done", done).await.unwrap();
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_rules_triage_review_and_discuss() {
    let world = start_documented_world().await;
    let (issue, ticket) = open_issue(&world, "ada");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let labels = world.github.issue(REPOSITORY, issue).unwrap().labels;
    assert_eq!(labels, ["bug", "triaged"]);

    let number = open_flawed_request(&world);
    world
        .github
        .ask_for_review(REPOSITORY, number, AGENT, "rita")
        .unwrap();
    let ticket = format!("github:{REPOSITORY}#{number}");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let reviewed = async || world.github.reviews(REPOSITORY, number).ok()?.into_iter().next();
    let review = world.until("a review", reviewed).await.unwrap();
    assert!(review.body.contains("Adds a mean"), "{review:#?}");

    let quote = "return full * (100 - discount_percent) // 100";
    let citations = json!([{"path": "shop/cart.py", "line": 36, "quote": quote}]);
    let answer = json!({"answer": "It is rounded down.", "citations": citations});
    let research = vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
        ScriptStep::call("submit_answer", answer),
    ];
    world.model.set_script_of("Research what this", "", research);
    let text = ("How do we round?", "Is the total of an invoice rounded?");
    let number = world
        .github
        .start_discussion(REPOSITORY, "rita", "Ideas", text)
        .unwrap();
    let ticket = format!("github:{REPOSITORY}/discussions/{number}");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let comments = world.github.discussion(REPOSITORY, number).unwrap().comments;
    let ours = comments.iter().filter(|comment| comment.author == WRITER_LOGIN);
    let texts: Vec<&str> = ours.map(|comment| comment.body.as_str()).collect();
    assert!(
        texts.len() == 1 && texts[0].contains("It is rounded down."),
        "{texts:#?}"
    );
    world.stop().await.unwrap();
}

/// Opens a user's pull request with a division by zero, scripts its review, and returns its number.
fn open_flawed_request(world: &TestWorld) -> u64 {
    let text = "def mean(prices):\n    return sum(prices) / len(prices)\n";
    world
        .github
        .commit(REPOSITORY, "mean", "Mean price", &[("shop/mean.py", text)])
        .unwrap();
    let comment = json!({"path": "shop/mean.py", "line": 2, "trigger": "An empty cart",
        "why": "It divides by zero.", "weight": "blocking"});
    let review = vec![
        ScriptStep::call("read_file", json!({"path": "shop/mean.py"})).expecting("def mean(prices)"),
        ScriptStep::call(
            "submit_comments",
            json!({"summary": "Adds a mean.", "comments": [comment]}),
        ),
    ];
    world.model.set_script_of("Review this pull request", "", review);
    world
        .github
        .open_pull_request_as(REPOSITORY, "sam", "mean", "Mean price", "Adds the mean price.")
        .unwrap()
}
