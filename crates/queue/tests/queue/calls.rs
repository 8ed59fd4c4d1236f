//! Calls of the API for pull requests.

use domain::{PullRequestAnswer, PullRequestCall, Timestamp};
use queue::{CallClaim, TableRevision};
use serde_json::json;

use crate::world::World;

fn build_call(id: &str, title: &str) -> PullRequestCall {
    PullRequestCall {
        id: id.to_owned(),
        at: Timestamp::from_unix_ms(1_000),
        by: "ci".to_owned(),
        request: json!({"title": title}),
    }
}

#[tokio::test]
async fn call_is_claimed_until_reporter_seems_dead() {
    let world = World::new().await;
    let calls = world.queue.pull_request_calls();
    let (first, second) = (build_call("cursor", "One"), build_call("a.b *>", "Two"));
    assert_eq!(calls.ask(&first).await.unwrap(), None);
    assert_eq!(
        calls.ask(&build_call("cursor", "Other")).await.unwrap(),
        Some(first.clone())
    );
    assert_eq!(calls.ask(&second).await.unwrap(), None);
    let (listed, newest) = calls.changes_after(TableRevision::default()).await.unwrap();
    assert_eq!(listed, [first.clone(), second.clone()]);
    assert_eq!(calls.changes_after(newest).await.unwrap(), (Vec::new(), newest));

    let now = Timestamp::from_unix_ms(10_000);
    let CallClaim::Ours(dead) = calls.take(&first.id, now).await.unwrap() else {
        panic!("nobody has it")
    };
    assert_eq!(
        calls.take(&first.id, now.plus_ms(299_999)).await.unwrap(),
        CallClaim::Theirs
    );
    let CallClaim::Ours(taken) = calls.take(&first.id, now.plus_ms(300_000)).await.unwrap() else {
        panic!("its reporter is dead")
    };
    let answer = PullRequestAnswer {
        taken_at: now,
        answer: Some(json!({"status": "success"})),
    };
    let late = calls.keep_answer(&first.id, &answer, dead).await;
    assert!(matches!(late, Err(queue::Error::Conflict)), "{late:?}");
    calls.keep_answer(&first.id, &answer, taken).await.unwrap();
    assert_eq!(
        calls.take(&first.id, now.plus_ms(900_000)).await.unwrap(),
        CallClaim::Answered
    );
    assert_eq!(calls.answer(&first.id).await.unwrap(), Some(answer));
    assert_eq!(calls.answer(&second.id).await.unwrap(), None);

    assert_eq!(calls.forget_before(first.at).await.unwrap(), 0);
    assert_eq!(calls.forget_before(first.at.plus_ms(1)).await.unwrap(), 2);
    assert_eq!(calls.call(&first.id).await.unwrap(), None);
    assert_eq!(calls.answer(&first.id).await.unwrap(), None);
}

#[tokio::test]
async fn calls_of_recreated_bucket_are_listed() {
    let world = World::new().await;
    let calls = world.queue.pull_request_calls();
    for id in ["one", "two", "three"] {
        calls.ask(&build_call(id, "Before")).await.unwrap();
    }
    let (listed, newest) = calls.changes_after(TableRevision::default()).await.unwrap();
    assert_eq!(listed.len(), 3);
    world.raw().await.delete_stream("KV_control").await.unwrap();
    world.queue.ensure_topology().await.unwrap();
    let (listed, newest) = calls.changes_after(newest).await.unwrap();
    assert!(listed.is_empty(), "{listed:?}");
    let fourth = build_call("four", "After");
    calls.ask(&fourth).await.unwrap();
    let (listed, newest) = calls.changes_after(newest).await.unwrap();
    assert_eq!(listed, [fourth]);
    // The bucket is created again and written between two reads.
    let fifth = build_call("five", "Later");
    calls.ask(&fifth).await.unwrap();
    let (_, newest) = calls.changes_after(newest).await.unwrap();
    world.raw().await.delete_stream("KV_control").await.unwrap();
    world.queue.ensure_topology().await.unwrap();
    calls.ask(&fifth).await.unwrap();
    let (listed, newest) = calls.changes_after(newest).await.unwrap();
    assert_eq!(listed, [fifth]);
    assert_eq!(calls.changes_after(newest).await.unwrap(), (Vec::new(), newest));
}
