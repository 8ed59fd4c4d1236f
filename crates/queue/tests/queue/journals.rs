//! Journals of runs: append, read, follow and expire.

use futures::{StreamExt as _, TryStreamExt as _};
use queue::Error;

use crate::world::{World, await_soon, build_entry, build_run_id};

#[tokio::test]
async fn entries_come_back_in_order() {
    let world = World::new().await;
    let journal = world.queue.journal();
    assert_eq!(journal.read(&build_run_id(1)).await.unwrap(), []);
    let mut last = 0;
    let mut written = Vec::new();
    for position in 0..5 {
        last = journal
            .append(
                &build_run_id(1),
                last,
                &build_entry(position, &format!("n{position}")),
            )
            .await
            .unwrap();
        journal
            .append(&build_run_id(2), 0, &build_entry(0, &format!("other{position}")))
            .await
            .ok();
        written.push((last, build_entry(position, &format!("n{position}"))));
    }
    assert_eq!(journal.read(&build_run_id(1)).await.unwrap(), written);
}

#[tokio::test]
async fn whoever_lost_the_race_is_refused() {
    let world = World::new().await;
    let journal = world.queue.journal();
    let first = journal
        .append(&build_run_id(1), 0, &build_entry(0, "a"))
        .await
        .unwrap();
    assert!(matches!(
        journal.append(&build_run_id(1), 0, &build_entry(0, "b")).await,
        Err(Error::Conflict)
    ));
    journal
        .append(&build_run_id(1), first, &build_entry(1, "b"))
        .await
        .unwrap();
    assert!(matches!(
        journal
            .append(&build_run_id(1), first, &build_entry(1, "a2"))
            .await,
        Err(Error::Conflict)
    ));
    assert_eq!(journal.read(&build_run_id(1)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn own_entry_is_recognized_after_lost_acknowledgement() {
    let world = World::new().await;
    let journal = world.queue.journal();
    let first = journal
        .append(&build_run_id(1), 0, &build_entry(0, "a"))
        .await
        .unwrap();
    assert_eq!(
        journal
            .append(&build_run_id(1), 0, &build_entry(0, "a"))
            .await
            .unwrap(),
        first
    );
    let second = journal
        .append(&build_run_id(1), first, &build_entry(1, "b"))
        .await
        .unwrap();
    assert_eq!(
        journal
            .append(&build_run_id(1), first, &build_entry(1, "b"))
            .await
            .unwrap(),
        second
    );
    assert_eq!(journal.read(&build_run_id(1)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn follower_gets_existing_then_new_entries() {
    let world = World::new().await;
    let journal = world.queue.journal();
    let mut everything = journal.follow_all().await.unwrap();
    let mut last = 0;
    for position in 0..3 {
        last = journal
            .append(
                &build_run_id(1),
                last,
                &build_entry(position, &format!("n{position}")),
            )
            .await
            .unwrap();
    }
    let mut followed = journal.follow(&build_run_id(1), 1).await.unwrap();
    assert_eq!(await_soon(followed.next()).await.unwrap().unwrap().position, 1);
    assert_eq!(await_soon(followed.next()).await.unwrap().unwrap().position, 2);
    journal
        .append(&build_run_id(2), 0, &build_entry(0, "other"))
        .await
        .unwrap();
    journal
        .append(&build_run_id(1), last, &build_entry(3, "n3"))
        .await
        .unwrap();
    assert_eq!(await_soon(followed.next()).await.unwrap().unwrap().position, 3);
    let seen: Vec<_> = await_soon(everything.by_ref().take(5).try_collect::<Vec<_>>())
        .await
        .unwrap();
    assert_eq!(seen[3], (build_run_id(2), build_entry(0, "other")));
    assert_eq!(seen[4], (build_run_id(1), build_entry(3, "n3")));
}

#[tokio::test]
async fn journals_of_old_runs_expire() {
    let world = World::new().await;
    let journal = world.queue.journal();
    let end = |nonce: &str| domain::JournalEntry {
        fact: domain::Fact::RunFinished {
            reason: domain::StopReason::Completed,
        },
        ..build_entry(1, nonce)
    };
    for number in [1, 2] {
        let last = journal
            .append(&build_run_id(number), 0, &build_entry(0, "a"))
            .await
            .unwrap();
        if number == 1 {
            journal
                .append(&build_run_id(number), last, &end("b"))
                .await
                .unwrap();
        }
    }
    assert_eq!(journal.expire(end("").at).await.unwrap(), 0, "not yet");
    assert_eq!(journal.expire(end("").at.plus_ms(1)).await.unwrap(), 1);
    assert_eq!(journal.read(&build_run_id(1)).await.unwrap(), []);
    assert_eq!(
        journal.read(&build_run_id(2)).await.unwrap().len(),
        1,
        "a live run stays"
    );
}

#[tokio::test]
async fn long_journals_are_read_page_by_page() {
    let world = World::new().await;
    let journal = world.queue.journal();
    let nothing: Vec<_> = journal.entries(&build_run_id(1)).try_collect().await.unwrap();
    assert_eq!(nothing, []);
    let mut last = 0;
    for position in 0..200 {
        let long = format!("n{position}{}", "x".repeat(30_000));
        last = journal
            .append(&build_run_id(1), last, &build_entry(position, &long))
            .await
            .unwrap();
    }
    let read = journal.read(&build_run_id(1)).await.unwrap();
    let entries: Vec<_> = journal.entries(&build_run_id(1)).try_collect().await.unwrap();
    assert_eq!((entries.len(), entries), (200, read));
    let kept = journal
        .read_kept(&build_run_id(1), |entry| entry.position % 50 == 7)
        .await;
    let positions = kept.unwrap().into_iter().map(|entry| entry.position);
    assert_eq!(positions.collect::<Vec<_>>(), [7, 57, 107, 157]);
}

#[tokio::test]
async fn newest_entries_are_followed_from_last_one() {
    let world = World::new().await;
    let journal = world.queue.journal();
    let mut unknown = journal.follow_newest(&build_run_id(2)).await.unwrap();
    let mut last = 0;
    for position in 0..3 {
        let next = build_entry(position, &position.to_string());
        last = journal.append(&build_run_id(1), last, &next).await.unwrap();
    }
    let mut newest = journal.follow_newest(&build_run_id(1)).await.unwrap();
    assert_eq!(await_soon(newest.next()).await.unwrap().unwrap().position, 2);
    journal
        .append(&build_run_id(1), last, &build_entry(3, "3"))
        .await
        .unwrap();
    assert_eq!(await_soon(newest.next()).await.unwrap().unwrap().position, 3);
    journal
        .append(&build_run_id(2), 0, &build_entry(0, "0"))
        .await
        .unwrap();
    assert_eq!(await_soon(unknown.next()).await.unwrap().unwrap().position, 0);
}
