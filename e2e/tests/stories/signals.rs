//! Reactions: users see at their comment that it was received, and that its work is done.

use domain::StopReason;
use e2e::TestWorld;
use serde_json::json;
use testkit::{ScriptStep, fixture::REPOSITORY, github::ReactedObject};

use crate::{
    comment_with, complete_ticket, end_of, list_ticket_comments, only_pull_request, start_default_world,
};

/// Waits until a target has exactly these reactions.
pub(crate) async fn await_reactions(world: &TestWorld, to: ReactedObject, wanted: &[&str]) {
    let has = async || (world.github.reactions(REPOSITORY, to) == wanted).then_some(());
    let what = format!("{wanted:?} on {to:?}");
    world.until(&what, has).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn review_gets_eyes_then_rocket() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    let number = only_pull_request(&world).number;
    let next = world.github.next_id();
    let finish = json!({"type": "fix", "title": "Answer the question", "summary": "Nothing had to be changed.",
        "replies": [{"id": next + 1, "disposition": "answered", "reply": "It is a percentage."}]});
    world.model.set_script_of(
        "A review of the pull request",
        "",
        vec![ScriptStep::call("finish", finish)],
    );
    let lines = [("shop/cart.py", 4, "Why is the discount last?")];
    world
        .github
        .review_lines(REPOSITORY, number, "rita", ("commented", ""), &lines)
        .unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    await_reactions(&world, ReactedObject::LineComment(next + 1), &["eyes", "rocket"]).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn command_gets_eyes_and_requested_cost() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    let number = only_pull_request(&world).number;
    let next = world.github.next_id();
    world
        .github
        .comment_as(REPOSITORY, number, "rita", "/cost")
        .unwrap();
    await_reactions(&world, ReactedObject::Comment(next), &["eyes"]).await;
    let comment = world.until("the cost", async || {
        let comments = world.github.comments(REPOSITORY, number);
        comments
            .into_iter()
            .find(|comment| comment.body.starts_with("Models have taken"))
    });
    let comment = comment.await.unwrap().body;
    assert!(
        comment.contains(&format!("| `jira:{key}@1` | implement | ")),
        "{comment}"
    );

    world.jira.comment_as(&key, "ada", "/cost").unwrap();
    comment_with(&world, &key, "Models have taken").await;
    world.jira.comment_as(&key, "ada", "/help").unwrap();
    comment_with(&world, &key, "another try after a failure").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_read_as_written() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    world
        .jira
        .comment_as(&key, "ada", "\u{ff0f}Cost, please.")
        .unwrap();
    comment_with(&world, &key, "Models have taken").await;
    world.jira.comment_as(&key, "ada", "/stpo").unwrap();
    comment_with(&world, &key, "write it at the start of a comment").await;
    // An escaped order is shown, so only the next one is answered.
    world.jira.comment_as(&key, "ada", "\\/help").unwrap();
    world.jira.comment_as(&key, "ada", "/Help").unwrap();
    comment_with(&world, &key, "another try after a failure").await;
    let tables = list_ticket_comments(&world, &key);
    let tables = tables
        .iter()
        .filter(|text| text.contains("another try after a failure"));
    assert_eq!(tables.count(), 1);
    world.stop().await.unwrap();
}
