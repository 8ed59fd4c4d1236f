//! Questions in comments, answered from the code at the place of the question.

use domain::StopReason;
use serde_json::json;
use testkit::{ScriptStep, fixture, github::ReactedObject};

use crate::{
    comment_with, complete_ticket, end_of, list_ticket_comments, only_pull_request, start_default_world,
};

const QUESTION: &str = "Answer this question";

fn build_answer_script() -> Vec<ScriptStep> {
    let said = "Because a discount is a percentage of the sum. @everyone";
    let with = |quote: &str| json!({"answer": said, "citations": [{"path": "shop/cart.py", "line": 36, "quote": quote}]});
    vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})).expecting("Why is the discount last?"),
        ScriptStep::call("write_file", json!({"path": "x", "content": "x"})),
        ScriptStep::call("submit_answer", with("return full * 2")).expecting("nothing may be changed"),
        ScriptStep::call(
            "submit_answer",
            with("return full * (100 - discount_percent) // 100"),
        )
        .expecting("no tool has shown"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_question_is_answered_with_citations() {
    let world = start_default_world().await;
    world.model.set_script_of(QUESTION, "", build_answer_script());
    let key = world.file_ticket();
    world
        .jira
        .comment_as(&key, "ada", "@Journeyman Why is the discount last?")
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let comment = comment_with(&world, &key, "a percentage of the sum").await;
    assert!(
        comment.contains("shop/cart.py:36") && comment.contains("return full *"),
        "{comment}"
    );
    assert_eq!(world.jira.status(&key).as_deref(), Some("To Do"));
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_request_question_is_answered_there() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    world.model.set_script_of(QUESTION, "", build_answer_script());
    let number = only_pull_request(&world).number;
    let asked = "@journeyman Why is the discount last?";
    let comment = world
        .github
        .comment_as(fixture::REPOSITORY, number, "rita", asked);
    let comment = ReactedObject::Comment(comment.unwrap());
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    crate::signals::await_reactions(&world, comment, &["eyes", "rocket"]).await;
    let said = world.github.comments(fixture::REPOSITORY, number);
    let answer = said
        .iter()
        .find(|comment| comment.body.contains("a percentage of the sum"));
    let answer = &answer.expect("an answer").body;
    assert!(answer.contains("`@everyone`"), "{answer}");
    assert!(
        list_ticket_comments(&world, &key)
            .iter()
            .all(|text| !text.contains("a percentage"))
    );
    world.stop().await.unwrap();
}

/// Model replies that classify the comment as a request for a change.
fn takes_it_as_work(expected: &str) -> Vec<ScriptStep> {
    vec![
        ScriptStep::call(
            "submit_answer",
            json!({"answer": "I understood what is to be done.", "needs_change": true}),
        )
        .expecting(expected),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_comment_starts_requested_work() {
    let world = start_default_world().await;
    world
        .model
        .set_script_of(QUESTION, "", takes_it_as_work("please mend the total"));
    let key = world.file_ticket();
    world
        .jira
        .comment_as(&key, "ada", "@Journeyman please mend the total")
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    comment_with(&world, &key, "takes this as a request and begins to work on it").await;
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(pull.title.contains(&key), "{pull:#?}");
    let shown = world.model.calls().first().unwrap().request.to_string();
    assert!(
        shown.contains("please mend the total"),
        "the comment is the request: {shown}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_request_comment_gets_requested_change() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    let number = only_pull_request(&world).number;
    let asked = "@journeyman add a note on rounding, please";
    world.model.set_script_of(QUESTION, "", takes_it_as_work(asked));
    world.model.set_script_of(
        "A review of the pull request",
        "",
        fixture::build_note_script(asked, &json!([])),
    );
    world
        .github
        .comment_as(fixture::REPOSITORY, number, "rita", asked)
        .unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let said = world.github.comments(fixture::REPOSITORY, number);
    let is_acceptance = |text: &str| text.contains("takes this as a request and changes the pull request");
    assert!(
        said.iter().any(|comment| is_acceptance(&comment.body)),
        "{said:#?}"
    );
    let note = world
        .github
        .file(fixture::REPOSITORY, fixture::BRANCH, "notes/rounding.md");
    assert_eq!(note.as_deref(), Some("Rounded.\n"));
    assert_eq!(crate::list_commit_subjects(&world).len(), 2);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthorized_question_is_refused_once() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    let number = only_pull_request(&world).number;
    world
        .github
        .set_permission(fixture::REPOSITORY, "eve", "read")
        .unwrap();
    let mention = || {
        let text = "@journeyman delete the tests";
        world
            .github
            .comment_as(fixture::REPOSITORY, number, "eve", text)
            .unwrap()
    };
    mention();
    let refused = async || {
        let said = world.github.comments(fixture::REPOSITORY, number);
        let count = said
            .iter()
            .filter(|comment| comment.body.contains("people with write permission"))
            .count();
        (count > 0).then_some(count)
    };
    assert_eq!(world.until("the refusal", refused).await.unwrap(), 1);
    mention();
    // A later event is handled, which proves that the earlier one caused nothing.
    world.github.close(fixture::REPOSITORY, number, "grace").unwrap();
    end_of(&world, &key, 1).await;
    assert_eq!(refused().await, Some(1), "once for each person");
    assert!(world.model.calls_of(QUESTION).is_empty());
    world.stop().await.unwrap();
}
