//! Journals of runs: append, read, follow and expire.

use domain::{JournalEntry, RunId};
use futures::{StreamExt as _, TryStreamExt as _, future};
use queue::{Error, JournalSignal, Queue, Settings};
use servers::{NatsCluster, NatsOptions};

use crate::world::{
    World, await_soon, build_entry, build_run_id, build_server_settings, open_queue, settings_for,
};

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

/// Three entries of one step, from a position on. Like the nonces of a planner, theirs are unique with `name`.
fn build_step(first: u64, name: &str) -> Vec<JournalEntry> {
    let positions = first..first + 3;
    positions
        .map(|position| build_entry(position, &format!("{name}.{position}")))
        .collect()
}

#[tokio::test]
async fn step_entries_are_single_messages_in_order() {
    let world = World::new().await;
    let (journal, run) = (world.queue.journal(), build_run_id(1));
    let first = build_step(0, "own");
    let last = journal.append_all(&run, 0, &first).await.unwrap();
    let second = build_step(3, "own");
    let newest = journal.append_all(&run, last, &second).await.unwrap();
    let read = journal.read(&run).await.unwrap();
    assert_eq!(read.last().map(|(sequence, _)| *sequence), Some(newest));
    let entries: Vec<_> = read.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(entries, [first, second].concat());
    let mut stream = world.raw().await.get_stream("JOURNAL").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 6);
}

#[tokio::test]
async fn single_server_gets_entries_of_step_together() {
    let world = World::new().await;
    let (journal, run) = (world.queue.journal(), build_run_id(1));
    let stream = world.raw().await.get_stream("JOURNAL").await.unwrap();
    let mut last = 0;
    // The queue reads the stream's configuration in the background after the first step.
    await_soon(async {
        for step in 0.. {
            let entries = build_step(step * 3, "own");
            last = journal.append_all(&run, last, &entries).await.unwrap();
            let newest = stream.get_raw_message(last).await.unwrap();
            let before = newest.headers.get("Nats-Expected-Last-Msg-Id");
            if before.is_some_and(|before| before.as_str() == entries[1].nonce) {
                return;
            }
        }
    })
    .await;
    let entries = journal.read(&run).await.unwrap();
    let positions = entries.iter().map(|(_, entry)| entry.position);
    assert!(positions.eq(0..entries.len() as u64));
}

#[tokio::test]
async fn cluster_stores_step_entries_one_by_one() {
    let cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
    let settings = Settings {
        replicas: 3,
        ..settings_for(cluster.url())
    };
    let queue = open_queue(&settings).await;
    let client = async_nats::connect(cluster.servers()[0].url()).await.unwrap();
    let stream = async_nats::jetstream::new(client)
        .get_stream("JOURNAL")
        .await
        .unwrap();
    let (journal, run, mut last) = (queue.journal(), build_run_id(1), 0);
    for step in 0..20 {
        let entries = build_step(step * 3, "own");
        last = journal.append_all(&run, last, &entries).await.unwrap();
        let newest = stream.get_raw_message(last).await.unwrap();
        // A replica that catches up would refuse an entry that is compared by the id of another.
        assert!(newest.headers.get("Nats-Expected-Last-Msg-Id").is_none());
    }
    assert_eq!(journal.read(&run).await.unwrap().len(), 60);
}

#[tokio::test]
async fn lost_race_stores_no_entry_of_step() {
    let world = World::new().await;
    let (journal, run) = (world.queue.journal(), build_run_id(1));
    let first = journal.append(&run, 0, &build_entry(0, "a")).await.unwrap();
    journal
        .append(&run, first, &build_entry(1, "theirs"))
        .await
        .unwrap();
    let ours = build_step(1, "ours");
    let lost = journal.append_all(&run, first, &ours).await;
    assert!(matches!(lost, Err(Error::Conflict)), "{lost:?}");
    assert_eq!(journal.read(&run).await.unwrap().len(), 2);
}

/// Appends steps of a run until the queue sends their entries together. It reads the configuration of the stream in
/// the background after the first step.
async fn await_joined_appends(world: &World) {
    let (journal, run) = (world.queue.journal(), build_run_id(8));
    let stream = world.raw().await.get_stream("JOURNAL").await.unwrap();
    await_soon(async {
        let mut last = 0;
        for step in 0.. {
            let entries = build_step(step * 3, "warm");
            last = journal.append_all(&run, last, &entries).await.unwrap();
            let newest = stream.get_raw_message(last).await.unwrap();
            if newest.headers.get("Nats-Expected-Last-Msg-Id").is_some() {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn joined_step_is_completed_by_repetition() {
    let world = World::new().await;
    await_joined_appends(&world).await;
    let (journal, raw) = (world.queue.journal(), world.raw().await);
    let stream = raw.get_stream("JOURNAL").await.unwrap();
    for (number, is_followed) in [(1, false), (2, true)] {
        let (run, step) = (build_run_id(number), build_step(0, &format!("own{number}")));
        let last = journal.append_all(&run, 0, &step).await.unwrap();
        // The first entries are stored with their ids, like those of a step whose last message was lost.
        assert!(stream.delete_message(last).await.unwrap());
        if is_followed {
            journal
                .append(&build_run_id(9), 0, &build_entry(0, "other"))
                .await
                .unwrap();
        }
        journal.append_all(&run, 0, &step).await.unwrap();
        // A repetition after a lost acknowledgement changes nothing.
        let last = journal.append_all(&run, 0, &step).await.unwrap();
        let read = journal.read(&run).await.unwrap();
        assert_eq!(read.last().map(|(sequence, _)| *sequence), Some(last), "{number}");
        let entries: Vec<_> = read.into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries, step, "{number}");
    }
}

#[tokio::test]
async fn fence_after_joined_entries_stops_repetition() {
    let world = World::new().await;
    await_joined_appends(&world).await;
    let (journal, raw) = (world.queue.journal(), world.raw().await);
    let stream = raw.get_stream("JOURNAL").await.unwrap();
    let (run, step) = (build_run_id(1), build_step(0, "own"));
    let last = journal.append_all(&run, 0, &step).await.unwrap();
    assert!(stream.delete_message(last).await.unwrap());
    let before = journal
        .read(&run)
        .await
        .unwrap()
        .last()
        .map(|(sequence, _)| *sequence);
    let fence = build_entry(2, "theirs");
    journal.append(&run, before.unwrap(), &fence).await.unwrap();
    let lost = journal.append_all(&run, 0, &step).await;
    assert!(matches!(lost, Err(Error::Conflict)), "{lost:?}");
    let read = journal.read(&run).await.unwrap();
    let entries: Vec<_> = read.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(entries, [&step[..2], &[fence]].concat());
}

#[tokio::test]
async fn interrupted_step_is_completed_by_repetition() {
    let world = World::new().await;
    let journal = world.queue.journal();
    for (number, stored) in [(1, 1), (2, 2), (3, 3)] {
        // The connection was lost after these entries, so their acknowledgements are unknown.
        let (run, step) = (build_run_id(number), build_step(0, &format!("own{number}")));
        journal.append_all(&run, 0, &step[..stored]).await.unwrap();
        journal
            .append(&build_run_id(9 + number), 0, &build_entry(0, "other"))
            .await
            .unwrap();
        let last = journal.append_all(&run, 0, &step).await.unwrap();
        let read = journal.read(&run).await.unwrap();
        assert_eq!(read.last().map(|(sequence, _)| *sequence), Some(last), "{stored}");
        let entries: Vec<_> = read.into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries, step, "{stored}");
    }
}

#[tokio::test]
async fn fence_within_interrupted_step_stops_the_rest() {
    let world = World::new().await;
    let (journal, run) = (world.queue.journal(), build_run_id(1));
    for (stored, total) in [(1, 2), (2, 3)] {
        let step = build_step(0, &format!("own{stored}"));
        let run = RunId::new(run.ticket().clone(), total);
        let last = journal.append_all(&run, 0, &step[..stored]).await.unwrap();
        journal
            .append(&run, last, &build_entry(total - 1, "theirs"))
            .await
            .unwrap();
        let lost = journal.append_all(&run, 0, &step).await;
        assert!(matches!(lost, Err(Error::Conflict)), "{stored}: {lost:?}");
        let read = journal.read(&run).await.unwrap();
        assert_eq!(read.len() as u64, total, "{stored}");
    }
}

#[tokio::test]
async fn simultaneous_steps_keep_every_journal_complete() {
    const RUNS: u64 = 8;
    const STEPS: u64 = 40;
    let world = World::new().await;
    // Two connections, so that the server gets entries of other runs between those of a step.
    let other = Queue::connect(&build_server_settings(&world.server), "other")
        .await
        .unwrap();
    let play = async |number: u64| {
        let queue = if number.is_multiple_of(2) {
            &world.queue
        } else {
            &other
        };
        let (journal, run) = (queue.journal(), build_run_id(number));
        let (mut last, mut written) = (0, Vec::new());
        for step in 0..STEPS {
            let entries = build_step(step * 3, &format!("run{number}"));
            last = journal.append_all(&run, last, &entries).await.unwrap();
            written.extend(entries);
        }
        let read = journal.read(&run).await.unwrap();
        let read: Vec<_> = read.into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(read, written, "{number}");
    };
    future::join_all((1..=RUNS).map(play)).await;
    let mut stream = world.raw().await.get_stream("JOURNAL").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, RUNS * STEPS * 3);
}

#[tokio::test]
async fn new_entries_of_all_runs_are_followed() {
    let world = World::new().await;
    let journal = world.queue.journal();
    journal
        .append(&build_run_id(3), 0, &build_entry(0, "before"))
        .await
        .unwrap();
    let mut everything = journal.follow_all().await.unwrap();
    for number in 1..=2 {
        let entry = build_entry(0, &format!("n{number}"));
        journal.append(&build_run_id(number), 0, &entry).await.unwrap();
        let (run, seen) = await_soon(everything.next()).await.unwrap().unwrap();
        assert_eq!((run, seen), (build_run_id(number), entry));
    }
}

#[tokio::test]
async fn new_entries_are_signaled_without_decoding() {
    let world = World::new().await;
    let mut signals = world.queue.journal().signal_all().await.unwrap();
    let raw = world.raw().await;
    // None of them is a whole entry.
    for (body, expected) in [
        (
            r#"{"version":1,"position":0,"fact":{"note":"","type":"code_found"}}"#,
            JournalSignal::Routine,
        ),
        (
            r#"{"version":1,"position":1,"fact":{"type":"parked"}}"#,
            JournalSignal::Change,
        ),
        (
            r#"{"version":2,"fact":{"type":"tomorrow"}}"#,
            JournalSignal::Change,
        ),
        ("{", JournalSignal::Change),
    ] {
        let published = raw
            .publish("journeyman.journal.jira=3AENG-1.57", body.into())
            .await;
        published.unwrap().await.unwrap();
        let signal = await_soon(signals.next()).await.unwrap().unwrap();
        assert_eq!(signal, expected, "{body}");
    }
}

/// A server admits 1,000 consumers for each stream.
#[tokio::test]
async fn followers_outnumber_consumers_of_stream() {
    const FOLLOWERS: u64 = 1_001;
    let world = World::new().await;
    let journal = world.queue.journal();
    let mut followed = Vec::new();
    for number in 1..=FOLLOWERS {
        followed.push(journal.follow_newest(&build_run_id(number)).await.unwrap());
    }
    journal
        .append(&build_run_id(FOLLOWERS), 0, &build_entry(0, "0"))
        .await
        .unwrap();
    let last = followed.last_mut().unwrap();
    assert_eq!(await_soon(last.next()).await.unwrap().unwrap().position, 0);
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
async fn short_journal_is_read_by_one_request() {
    const READS: u64 = 20;
    let world = World::new().await;
    let (journal, run) = (world.queue.journal(), build_run_id(1));
    journal.append(&run, 0, &build_entry(0, "n0")).await.unwrap();
    // The first reads ask for the configuration of the stream in the background.
    await_soon(async {
        loop {
            let before = world.count_received_messages().await;
            for _ in 0..READS {
                assert_eq!(journal.read(&run).await.unwrap().len(), 1);
            }
            if world.count_received_messages().await - before < READS * 2 - 5 {
                return;
            }
        }
    })
    .await;
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
