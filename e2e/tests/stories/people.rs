//! Users: when they are asked, called and assigned.

use domain::StopReason;
use serde_json::json;
use testkit::{ScriptStep, fixture, github::RunConclusion, jira};

use crate::{
    await_own_comment, comment_with, complete_check, complete_first_run, end_of, list_own_comments,
    list_ticket_comments, only_pull_request,
};

const REPAIR: &str = "Checks failed on the pull request";
const REVIEW: &str = "A review of the pull request";

#[tokio::test(flavor = "multi_thread")]
async fn third_failed_repair_calls_maintainer() {
    let (world, key) = complete_first_run("pull_request:\n  reviewers: [grace]\n").await;
    let number = only_pull_request(&world).number;
    for (run, log) in [
        (1, "AssertionError: one"),
        (2, "AssertionError: two"),
        (3, "AssertionError: three"),
    ] {
        let evidence = json!({"kind": "cannot_reproduce", "evidence": "It passes here."});
        world
            .model
            .set_script_of(REPAIR, "", vec![ScriptStep::call("give_up", evidence)]);
        complete_check(&world, "notes", RunConclusion::Failure, log);
        let reason = end_of(&world, &key, run).await;
        assert!(matches!(reason, StopReason::GivenUp { .. }), "{reason:?}");
    }
    assert!(
        list_own_comments(&world, number).is_empty(),
        "nobody is called while repairs are tried"
    );
    let calls = world.model.calls().len();
    complete_check(&world, "notes", RunConclusion::Failure, "AssertionError: four");
    let called = await_own_comment(&world, number, "@grace").await;
    assert!(
        called.contains("maximum number of repairs") && called.contains("`notes` ([log](<"),
        "{called}"
    );
    end_of(&world, &key, 4).await;
    comment_with(&world, &key, "maximum number of repairs of this commit").await;
    assert_eq!(
        list_own_comments(&world, number).len(),
        1,
        "once: {:#?}",
        list_own_comments(&world, number)
    );
    assert_eq!(
        list_ticket_comments(&world, &key).len(),
        1,
        "the ticket has its status comment alone"
    );
    assert_eq!(world.model.calls().len(), calls, "no model is asked");
    // A user fixes it, and the work continues.
    complete_check(&world, "notes", RunConclusion::Success, "");
    let ready = async || (!only_pull_request(&world).draft).then_some(());
    world.until("a ready pull request", ready).await.unwrap();
    let asked = async || (only_pull_request(&world).requested_reviewers == ["grace"]).then_some(());
    world.until("a review is asked for", asked).await.unwrap();
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn contradicting_review_request_goes_to_owner() {
    let (world, key) = complete_first_run("pull_request:\n  reviewers: [grace]\n").await;
    complete_check(&world, "notes", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let number = only_pull_request(&world).number;
    let thread = world.github.next_id() + 1;
    let finish = json!({"type": "fix", "title": "Answer the review", "summary": "One request contradicts the ticket.",
        "replies": [{"id": thread, "disposition": "asked", "reply": "The ticket asks for a percentage."}]});
    world
        .model
        .set_script_of(REVIEW, "", vec![ScriptStep::call("finish", finish)]);
    let lines = [("shop/cart.py", 4, "Make the discount an amount.")];
    let review = ("changes_requested", "");
    world
        .github
        .review_lines(fixture::REPOSITORY, number, "rita", review, &lines)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let replies = world.github.replies(fixture::REPOSITORY, number, thread).unwrap();
    assert!(
        replies[0].starts_with("This needs a decision, @grace. The ticket asks for a percentage."),
        "{replies:#?}"
    );
    comment_with(&world, &key, "One comment waits for a decision by grace").await;
    assert_eq!(
        only_pull_request(&world).requested_reviewers,
        ["grace"],
        "rita is not asked again"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unassigned_ticket_is_ours_during_work() {
    let (world, key) = complete_first_run("agent:\n  assign: true\n").await;
    assert_eq!(world.jira.assignee(&key).as_deref(), Some(jira::WRITER_NAME));
    complete_check(&world, "notes", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let runs = world
        .client
        .runs()
        .recent(Some(&format!("jira:{key}").parse().unwrap()))
        .await
        .unwrap();
    assert_eq!(runs.len(), 2, "{runs:#?}");
    world.stop().await.unwrap();
}
