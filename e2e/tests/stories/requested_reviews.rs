//! Users' actions on pull requests: requests for our review, closing and reopening of ours.

use std::time::Duration;

use domain::{StopReason, WithdrawalReason};
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture::REPOSITORY, github::StandInReview};

use crate::{
    AGENT, await_model_request, build_polled_options, comment_with, complete_ticket, end_of,
    only_pull_request, start_world_with_rules,
};

const RULES: &str = "pull_request:\n  reviewer: journeyman-agent\n";

/// Opens a pull request with a division by zero, requests a review that the model does by this script, and returns
/// the number and ticket name.
fn request_review(world: &TestWorld, script: Vec<ScriptStep>) -> (u64, String) {
    world.model.set_script_of("Review this pull request", "", script);
    let files = [(
        "shop/mean.py",
        "def mean(prices):\n    return sum(prices) / len(prices)\n",
    )];
    world
        .github
        .commit(REPOSITORY, "mean", "Mean price", &files)
        .unwrap();
    let opened = world.github.open_pull_request_as(
        REPOSITORY,
        "sam",
        "mean",
        "Mean price",
        "Adds the mean price. @everyone",
    );
    let number = opened.unwrap();
    world
        .github
        .ask_for_review(REPOSITORY, number, AGENT, "rita")
        .unwrap();
    (number, format!("github:{REPOSITORY}#{number}"))
}

fn build_comment(line: u32) -> serde_json::Value {
    json!({"path": "shop/mean.py", "line": line, "trigger": "An empty cart", "why": "It divides by zero. @sam",
        "weight": "blocking", "suggestion": "    return sum(prices) / max(len(prices), 1)"})
}

fn build_review_script() -> Vec<ScriptStep> {
    let hand_in = |line: u32| json!({"summary": "Adds a mean. Read its only caller.", "comments": [build_comment(line)]});
    vec![
        ScriptStep::call("read_file", json!({"path": "shop/mean.py"})).expecting("def mean(prices)"),
        ScriptStep::call("write_file", json!({"path": "x", "content": "x"})),
        ScriptStep::call("submit_comments", hand_in(7)).expecting("nothing may be changed"),
        ScriptStep::call("submit_comments", hand_in(2)).expecting("is not a line that the pull request adds"),
    ]
}

async fn await_reviews(world: &TestWorld, number: u64, count: usize) -> Vec<StandInReview> {
    let submitted = async || {
        let reviews = world.github.reviews(REPOSITORY, number).ok()?;
        (reviews.len() >= count).then_some(reviews)
    };
    world.until("a review", submitted).await.unwrap()
}

fn assert_review(review: &StandInReview) {
    assert_eq!(review.state, "changes_requested");
    assert!(
        review.body.contains("asks for changes") && review.body.contains("Adds a mean"),
        "{review:#?}"
    );
    let [(path, line, text)] = &review.comments[..] else {
        panic!("{review:#?}")
    };
    assert_eq!((path.as_str(), *line), ("shop/mean.py", 2));
    assert!(
        text.contains("```suggestion\n    return sum(prices) / max(len(prices), 1)\n```"),
        "{text}"
    );
    assert!(
        text.contains("**Blocking.**") && text.contains("`@sam`"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_review_follows_each_new_head() {
    let world = start_world_with_rules(RULES).await;
    let (number, ticket) = request_review(&world, build_review_script());
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    assert_review(&await_reviews(&world, number, 1).await[0]);
    world.github.redeliver_all();
    let mut script = build_review_script();
    script[0].expect = Some("You reviewed this pull request before, at commit".to_owned());
    // The former line is not a valid place for a comment any more.
    let about_old = json!({"summary": "Adds a mean.", "comments": [build_comment(1)]});
    script.insert(2, ScriptStep::call("submit_comments", about_old));
    script[3].expect = Some("not new since your last review".to_owned());
    world.model.set_script_of("Review this pull request", "", script);
    let files = [(
        "shop/mean.py",
        "def mean(prices):\n    return sum(prices) / len(list(prices))\n",
    )];
    world.github.commit(REPOSITORY, "mean", "Again", &files).unwrap();
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    let reviews = await_reviews(&world, number, 2).await;
    assert_eq!(reviews.len(), 2, "one for each head: {reviews:#?}");
    assert!(
        world.github.comments(REPOSITORY, number).is_empty(),
        "the review says it all"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_requested_review() {
    let world = TestWorld::start(Options {
        rules: RULES.to_owned(),
        ..build_polled_options()
    });
    let world = world.await.unwrap();
    let (number, ticket) = request_review(&world, build_review_script());
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    assert_review(&await_reviews(&world, number, 1).await[0]);
    world.stop().await.unwrap();
}

/// Starts a world with a requested review that the model does not finish within the story.
async fn under_review() -> (TestWorld, u64, String) {
    let world = start_world_with_rules(RULES).await;
    world.model.set_latency(Duration::from_secs(600));
    let (number, ticket) = request_review(&world, build_review_script());
    await_model_request(&world, &ticket, 0).await;
    (world, number, ticket)
}

#[tokio::test(flavor = "multi_thread")]
async fn push_cancels_review_of_old_head() {
    let (world, number, ticket) = under_review().await;
    let files = [(
        "shop/median.py",
        "def median(prices):\n    return sorted(prices)[0]\n",
    )];
    world.github.commit(REPOSITORY, "mean", "More", &files).unwrap();
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Superseded);
    world.model.set_latency(Duration::ZERO);
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    assert_eq!(await_reviews(&world, number, 1).await.len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn review_ends_with_request_or_pull_request() {
    for why in [
        WithdrawalReason::Merged,
        WithdrawalReason::Closed,
        WithdrawalReason::Unrequested,
    ] {
        let (world, number, ticket) = under_review().await;
        match why {
            WithdrawalReason::Merged => drop(world.github.merge(REPOSITORY, number, "grace").unwrap()),
            WithdrawalReason::Closed => world.github.close(REPOSITORY, number, "grace").unwrap(),
            WithdrawalReason::Unrequested => world
                .github
                .take_back_request(REPOSITORY, number, AGENT, "rita")
                .unwrap(),
        }
        assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Withdrawn { why });
        assert!(world.github.reviews(REPOSITORY, number).unwrap().is_empty());
        assert!(
            world.github.comments(REPOSITORY, number).is_empty(),
            "no person has to be notified"
        );
        world.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reopened_pull_request_continues_to_merge() {
    for settings in [Vec::new(), vec![("INGEST__POLL_INTERVAL_S", "1".to_owned())]] {
        let no_webhooks = !settings.is_empty();
        let world = TestWorld::start(Options {
            settings,
            no_webhooks,
            ..Options::default()
        });
        let world = world.await.unwrap();
        let key = complete_ticket(&world).await;
        let number = only_pull_request(&world).number;
        world.github.close(REPOSITORY, number, "grace").unwrap();
        assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
        world.github.reopen(REPOSITORY, number, "grace").unwrap();
        assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
        comment_with(&world, &key, "opened").await;
        assert!(world.run_ci().await.unwrap());
        let ready = async || (!only_pull_request(&world).draft).then_some(());
        world.until("a ready pull request", ready).await.unwrap();
        world.github.merge(REPOSITORY, number, "grace").unwrap();
        let done = async || (world.jira.status(&key).as_deref() == Some("Done")).then_some(());
        world.until("the ticket Done", done).await.unwrap();
        world.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn review_judges_criteria_of_named_tickets() {
    let world = start_world_with_rules(RULES).await;
    let on_jira =
        "Carts get a mean.\n\n## Acceptance criteria\n\n- The mean of no prices is 0\n- It is shown in euros";
    let key = world
        .jira
        .create_issue(testkit::fixture::PROJECT, "Mean price", on_jira, "Story", &[]);
    let issue = world
        .github
        .open_issue_as(
            REPOSITORY,
            "rita",
            "Name the mean",
            "- [ ] The function is called mean",
        )
        .unwrap();
    let verdict = |quote: &str, verdict: &str| json!({"quote": quote, "verdict": verdict});
    let hand_in = |criteria: serde_json::Value| {
        ScriptStep::call(
            "submit_comments",
            json!({"summary": "Adds a mean.", "comments": [], "criteria": criteria}),
        )
    };
    let all = json!([
        verdict("The mean of no prices is 0", "not_met"),
        verdict("It is shown in euros", "needs_person"),
        verdict("The function is called mean", "met")
    ]);
    let steps = vec![
        hand_in(json!([verdict("The mean of no prices is 0", "met")])).expecting("It is shown in euros"),
        hand_in(json!([verdict("The mean is fast", "met")]))
            .expecting("needs one entry with a verdict for each"),
        hand_in(all).expecting("the ticket does not contain"),
    ];
    world.model.set_script_of("Review this pull request", "", steps);
    let files = [(
        "shop/mean.py",
        "def mean(prices):\n    return sum(prices) / len(prices)\n",
    )];
    world
        .github
        .commit(REPOSITORY, "mean", "Mean price", &files)
        .unwrap();
    let title = format!("{key}: Mean price");
    let body = format!("Fixes #{issue}, fixes #999.");
    let number = world
        .github
        .open_pull_request_as(REPOSITORY, "sam", "mean", &title, &body)
        .unwrap();
    world
        .github
        .ask_for_review(REPOSITORY, number, AGENT, "rita")
        .unwrap();
    let ticket = format!("github:{REPOSITORY}#{number}");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let review = &await_reviews(&world, number, 1).await[0];
    for row in [
        "| The mean of no prices is 0 | **not met** |",
        "| It is shown in euros | a person has to look |",
        "| The function is called mean | met |",
        "the ticket asks for more than this does",
    ] {
        assert!(review.body.contains(row), "{row}: {}", review.body);
    }
    assert_eq!(review.state, "commented", "people decide what a merge waits for");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn multi_line_suggestion_applies_as_written() {
    let world = start_world_with_rules(RULES).await;
    let code =
        "def mean(prices):\n    if not prices:\n        return 0\n    return sum(prices) / len(prices)";
    let on_lines = |start: u32, line: u32| {
        let mut comment = build_comment(line);
        comment["start_line"] = json!(start);
        comment["suggestion"] = json!(code);
        ScriptStep::call(
            "submit_comments",
            json!({"summary": "Adds a mean.", "comments": [comment]}),
        )
    };
    let steps = vec![
        on_lines(1, 3),
        on_lines(2, 1).expecting("is not a line that the pull request adds"),
        on_lines(1, 2).expecting("start_line must be above line"),
    ];
    let (number, ticket) = request_review(&world, steps);
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    await_reviews(&world, number, 1).await;
    let thread = world.github.threads(REPOSITORY, number).unwrap()[0];
    world
        .github
        .apply_suggestion(REPOSITORY, number, thread, "sam")
        .unwrap();
    let file = world.github.file(REPOSITORY, "mean", "shop/mean.py");
    assert_eq!(file.as_deref(), Some(format!("{code}\n").as_str()));
    world.stop().await.unwrap();
}
