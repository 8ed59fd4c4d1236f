//! Ends of the model's work: a change, a question, or no change.

use domain::{GiveUp, StopReason};
use e2e::TestWorld;
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{comment_with, end_of, list_ticket_comments, only_pull_request, start_world_with_script};

async fn ask_with_script(script: Vec<ScriptStep>) -> (TestWorld, String) {
    let world = start_world_with_script(script).await;
    let key = world.ask().unwrap();
    (world, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_request_follows_rules_and_model_fields() {
    let (world, key) = ask_with_script(fixture::build_shop_script()).await;
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert_eq!(
        (pull.title.as_str(), pull.head.as_str()),
        (fixture::TITLE, fixture::BRANCH)
    );
    for part in [
        "The total added each line's price once",
        "**Root cause.** `total` left the quantity of a line out.",
        "- `shop/cart.py`: The total multiplies each price by its quantity.",
        "| 1 | Three mugs at 8.50 and a poster at 12.00 should cost 37.50 | tests/test\\_cart.py |",
        "### Evidence",
        "A test that failed before passes with the change, and the others are no worse.",
        "| `python3 -m unittest -q` | fails | passes, 4 passed |",
        "**Failed before and passes now**",
    ] {
        let plain = pull.body.replace("test_cart", "test\\_cart");
        assert!(
            pull.body.contains(part) || plain.contains(part),
            "{part}\n{}",
            pull.body
        );
    }
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn question_waits_for_users_answer() {
    let question = json!({"questions": [{"text": "Are prices gross or net?", "options": ["gross", "net"]}]});
    let mut script = vec![ScriptStep::call("ask", question)];
    script.extend(fixture::build_shop_script());
    script[1].expect = Some("They are net.".to_owned());
    let (world, key) = ask_with_script(script).await;
    let comment = comment_with(&world, &key, "gross or net").await;
    assert!(
        comment.contains("\nnet\n") && comment.contains("Answer in a comment"),
        "{comment}"
    );
    world.jira.comment_as(&key, "ada", "They are net.").unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_ticket_ends_with_citation_alone() {
    let input =
        json!({"kind": "already_done", "evidence": "shop/cart.py line 27 multiplies by the quantity."});
    let (world, key) = ask_with_script(vec![ScriptStep::call("give_up", input)]).await;
    let reason = end_of(&world, &key, 0).await;
    assert!(
        matches!(
            reason,
            StopReason::GivenUp {
                kind: GiveUp::AlreadyDone,
                ..
            }
        ),
        "{reason:?}"
    );
    let comment = comment_with(&world, &key, "Nothing has to be changed").await;
    assert!(comment.contains("line 27"), "{comment}");
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    assert!(!list_ticket_comments(&world, &key).is_empty());
    world.stop().await.unwrap();
}
