//! Questions in comments: answered from the code, where they were asked.

use domain::StopReason;
use e2e::{Options, World};
use serde_json::json;
use testkit::{Step, fixture, github::Reacted};

use crate::{comment_with, comments, end_of, only_pull_request};

const QUESTION: &str = "Answer this question";

fn answer() -> Vec<Step> {
    let said = "Because a discount is a percentage of the sum. @everyone";
    let with = |quote: &str| json!({"answer": said, "citations": [{"path": "shop/cart.py", "line": 36, "quote": quote}]});
    vec![
        Step::call("read_file", json!({"path": "shop/cart.py"})).expecting("Why is the discount last?"),
        Step::call("write_file", json!({"path": "x", "content": "x"})),
        Step::call("submit_answer", with("return full * 2")).expecting("nothing may be changed"),
        Step::call(
            "submit_answer",
            with("return full * (100 - discount_percent) // 100"),
        )
        .expecting("no tool has shown"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_on_a_ticket_is_answered_there_with_what_was_read() {
    let world = World::start(Options::default()).await.unwrap();
    world.model.set_script_of(QUESTION, "", answer());
    let key = world.file_ticket();
    world
        .jira
        .comment_as(&key, "ada", "@Journeyman Why is the discount last?")
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let told = comment_with(&world, &key, "a percentage of the sum").await;
    assert!(
        told.contains("shop/cart.py:36") && told.contains("return full *"),
        "{told}"
    );
    assert_eq!(world.jira.status(&key).as_deref(), Some("To Do"));
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    assert_eq!(world.model.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_on_our_pull_request_is_answered_there() {
    let world = World::start(Options::default()).await.unwrap();
    let key = world.ask().unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    world.model.set_script_of(QUESTION, "", answer());
    let number = only_pull_request(&world).number;
    let asked = "@journeyman Why is the discount last?";
    let comment = world
        .github
        .comment_as(fixture::REPOSITORY, number, "rita", asked);
    let comment = Reacted::Comment(comment.unwrap());
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    crate::signals::reactions(&world, comment, &["eyes", "rocket"]).await;
    let said = world.github.comments(fixture::REPOSITORY, number);
    let answer = said
        .iter()
        .find(|comment| comment.body.contains("a percentage of the sum"));
    let answer = &answer.expect("an answer").body;
    assert!(answer.contains("`@everyone`"), "{answer}");
    assert!(
        comments(&world, &key)
            .iter()
            .all(|text| !text.contains("a percentage"))
    );
    world.stop().await.unwrap();
}
