//! Large bodies, objects and dead letters.

use bootstrap::read_wall_clock;
use bytes::Bytes;
use domain::{Fact, JournalEntry, ObjectRef, RecordKind, ServiceOrigin, Timestamp};
use queue::{DeadLetter, Error, KeyValueBucket, UnreferencedObject, WebhookDelivery};

use crate::world::{
    Text, World, build_entry, build_outbound_request, build_run_id, build_text, build_ticket_key,
    trigger_with,
};

#[tokio::test]
async fn record_over_payload_limit_round_trips() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let large = trigger_with(&build_ticket_key(1), "comment:1", "x".repeat(3 * 1024 * 1024));
    log.append(&large).await.unwrap();
    let read = log.read_after(&build_ticket_key(1), 0).await.unwrap();
    assert!(read[0].1 == large);
}

#[tokio::test]
async fn an_object_is_named_by_its_content() {
    let world = World::new().await;
    let objects = world.queue.objects();
    let bytes = Bytes::from(vec![7_u8; 5 * 1024 * 1024]);
    let object = objects.put(bytes.clone()).await.unwrap();
    assert_eq!(objects.put(bytes.clone()).await.unwrap(), object);
    assert_eq!(object.size_bytes, 5 * 1024 * 1024);
    assert!(objects.get(&object).await.unwrap() == bytes);
    let empty = objects.put(Bytes::new()).await.unwrap();
    assert!(objects.get(&empty).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_missing_object_is_named() {
    let world = World::new().await;
    let missing = ObjectRef {
        sha256: "0".repeat(64),
        size_bytes: 3,
    };
    let error = world.queue.objects().get(&missing).await.unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { what, .. } if what.contains("0000")),
        "{error}"
    );
}

#[tokio::test]
async fn dead_letters_are_listed_newest_last() {
    let world = World::new().await;
    let letters = world.queue.dead_letters();
    assert_eq!(letters.list(10).await.unwrap(), []);
    let letter = |id: u32| DeadLetter {
        what: RecordKind::Ticket,
        id: format!("line\nbreak ü {id}"),
        ticket: Some(build_ticket_key(1)),
        reason: "five takeovers without progress".to_owned(),
        at: read_wall_clock(),
    };
    let sent: Vec<DeadLetter> = (0..5).map(letter).collect();
    for one in &sent {
        letters.publish(one, Bytes::from_static(b"{}")).await.unwrap();
    }
    let dead = world.raw().await.get_stream("DEAD").await.unwrap();
    dead.delete_message(4).await.unwrap();
    let listed = letters.list(3).await.unwrap();
    assert_eq!(
        listed.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(),
        [2, 3, 5]
    );
    assert_eq!(listed[2].1, sent[4]);
    assert_eq!(letters.list(100).await.unwrap().len(), 4);
}

#[tokio::test]
async fn matching_letters_are_found_behind_others() {
    let world = World::new().await;
    let letters = world.queue.dead_letters();
    let publish = |ticket: u64, id: usize| {
        let letter = DeadLetter {
            what: RecordKind::Ticket,
            id: id.to_string(),
            ticket: Some(build_ticket_key(ticket)),
            reason: "not readable".to_owned(),
            at: read_wall_clock(),
        };
        let letters = &letters;
        async move { letters.publish(&letter, Bytes::from_static(b"{}")).await.unwrap() }
    };
    let wanted = build_ticket_key(1);
    let find = async |limit: usize| -> Vec<String> {
        let is_wanted = |letter: &DeadLetter| letter.ticket.as_ref() == Some(&wanted);
        let found = letters.list_matching(limit, is_wanted).await.unwrap();
        assert!(
            found.is_sorted_by_key(|(sequence, _)| *sequence),
            "newest last: {found:?}"
        );
        found.into_iter().map(|(_, letter)| letter.id).collect()
    };
    for id in 0..3 {
        publish(1, id).await;
    }
    // More than several pages, so that the first ones contain no letter that matches.
    for _ in 0..4 {
        futures::future::join_all((0..250).map(|_| publish(2, 1_000))).await;
    }
    publish(1, 3).await;
    assert_eq!(find(10).await, ["0", "1", "2", "3"]);
    assert_eq!(find(2).await, ["2", "3"]);
    assert_eq!(find(0).await, Vec::<String>::new());
    assert_eq!(letters.list(300).await.unwrap().len(), 300);
    // The deleted letters leave a gap.
    world.queue.forget_ticket(&build_ticket_key(2)).await.unwrap();
    assert_eq!(find(10).await, ["0", "1", "2", "3"]);
    assert_eq!(letters.list(300).await.unwrap().len(), 4);
    letters.remove(1).await.unwrap();
    assert_eq!(find(10).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn letters_with_large_bodies_are_listed_whole() {
    let world = World::new().await;
    let letters = world.queue.dead_letters();
    for id in 0..40 {
        let letter = DeadLetter {
            what: RecordKind::Ticket,
            id: id.to_string(),
            ticket: Some(build_ticket_key(1)),
            reason: "not readable".to_owned(),
            at: read_wall_clock(),
        };
        // Near the limit of a message, so that one answer of the server has only a few.
        letters
            .publish(&letter, vec![b'x'; 500 * 1024].into())
            .await
            .unwrap();
    }
    let ids: Vec<String> = letters
        .list(30)
        .await
        .unwrap()
        .into_iter()
        .map(|(_, letter)| letter.id)
        .collect();
    assert_eq!(ids, (10..40).map(|id| id.to_string()).collect::<Vec<_>>());
}

/// The time one day later, so that all stored objects are old enough to be collected.
fn compute_tomorrow() -> Timestamp {
    read_wall_clock().plus_ms(24 * 60 * 60 * 1000)
}

async fn find_garbage(world: &World, before: Timestamp) -> Vec<UnreferencedObject> {
    let search = world.queue.objects().unreferenced(before, 0).await.unwrap();
    assert_eq!(search.next, None);
    search.garbage
}

async fn collect_garbage(world: &World) -> usize {
    let mut collected = 0;
    for one in find_garbage(world, compute_tomorrow()).await {
        collected += usize::from(world.queue.objects().remove(&one).await.unwrap());
    }
    collected
}

async fn messages_of_the_store(world: &World) -> u64 {
    let mut stream = world.raw().await.get_stream("OBJ_objects").await.unwrap();
    stream.info().await.unwrap().state.messages
}

fn build_large_text(mark: &str) -> String {
    mark.repeat(700 * 1024)
}

/// Stores records of every kind that name an object or whose body is an object. Returns these objects.
async fn store_referring_records(world: &World) -> Vec<ObjectRef> {
    let objects = world.queue.objects();
    let (packed, pushed) = tokio::join!(
        objects.put(Bytes::from("snapshot")),
        objects.put(Bytes::from("pack"))
    );
    let (packed, pushed) = (packed.unwrap(), pushed.unwrap());
    let snapshot = domain::WorkspaceSnapshot {
        base: "0".repeat(40).parse().unwrap(),
        branch: None,
        head: None,
        commit: "1".repeat(40).parse().unwrap(),
        pack: packed.clone(),
        files_changed: 1,
        omitted: Vec::new(),
        ignored: Vec::new(),
    };
    let fact = Fact::SnapshotTaken {
        snapshot,
        repository: None,
    };
    let entry = JournalEntry {
        fact,
        ..build_entry(0, "n")
    };
    world
        .queue
        .journal()
        .append(&build_run_id(1), 0, &entry)
        .await
        .unwrap();
    let mut asked = build_outbound_request(&build_ticket_key(1), 5);
    asked.request = domain::OutboundAction::PushBranch(domain::BranchPush {
        scope: None,
        merge: None,
        repository: "acme/shop".parse().unwrap(),
        branch: "feat/x".to_owned(),
        base: "0".repeat(40).parse().unwrap(),
        head: "1".repeat(40).parse().unwrap(),
        pack: pushed.clone(),
        expected: None,
    });
    world.queue.reports().append(&asked).await.unwrap();
    let trigger = trigger_with(&build_ticket_key(1), "comment:1", build_large_text("t"));
    world.queue.triggers().append(&trigger).await.unwrap();
    let delivery = WebhookDelivery {
        source: ServiceOrigin::GitHub(None),
        id: "d1".to_owned(),
        event: "push".to_owned(),
        received_at: read_wall_clock(),
        body: build_large_text("d").into(),
    };
    world.queue.deliveries().publish(&delivery).await.unwrap();
    let letter = DeadLetter {
        what: RecordKind::Report,
        id: "r".to_owned(),
        ticket: None,
        reason: "no".to_owned(),
        at: read_wall_clock(),
    };
    world
        .queue
        .dead_letters()
        .publish(&letter, build_large_text("l").into())
        .await
        .unwrap();
    let row = world.queue.table::<Text>(KeyValueBucket::Effects);
    row.put("row", &build_text(&build_large_text("r")), None)
        .await
        .unwrap();
    vec![packed, pushed]
}

#[tokio::test]
async fn object_is_collected_after_last_reference() {
    let world = World::new().await;
    let named = store_referring_records(&world).await;
    assert_eq!(
        collect_garbage(&world).await,
        0,
        "every one of six is referred to"
    );
    let objects = world.queue.objects();
    let orphan = objects.put(Bytes::from("nobody wants me")).await.unwrap();
    assert_eq!(
        find_garbage(&world, read_wall_clock().plus_ms(-60_000))
            .await
            .len(),
        0,
        "too young"
    );
    assert_eq!(collect_garbage(&world).await, 1);
    assert!(matches!(objects.get(&orphan).await, Err(Error::Corrupt { .. })));
    for object in &named {
        objects.get(object).await.unwrap();
    }
    assert_eq!(
        world
            .queue
            .triggers()
            .read_after(&build_ticket_key(1), 0)
            .await
            .unwrap()
            .len(),
        1
    );

    world.queue.forget_ticket(&build_ticket_key(1)).await.unwrap();
    assert_eq!(
        collect_garbage(&world).await,
        3,
        "trigger, report and journal are gone"
    );
    world
        .raw()
        .await
        .get_stream("DELIVERIES")
        .await
        .unwrap()
        .purge()
        .await
        .unwrap();
    world.queue.dead_letters().remove(1).await.unwrap();
    world
        .queue
        .table::<Text>(KeyValueBucket::Effects)
        .delete("row")
        .await
        .unwrap();
    assert_eq!(collect_garbage(&world).await, 3);
    collect_garbage(&world).await;
    assert_eq!(
        messages_of_the_store(&world).await,
        0,
        "not even tombstones are left"
    );
}

#[tokio::test]
async fn only_chunks_of_torn_objects_are_collected() {
    let world = World::new().await;
    let objects = world.queue.objects();
    let bytes = Bytes::from(vec![7_u8; 300 * 1024]);
    let whole = objects.put(bytes.clone()).await.unwrap();
    let raw = world.raw().await;
    for _ in 0..3 {
        let ack = raw.publish("$O.objects.C.torn", "chunk".into()).await.unwrap();
        ack.await.unwrap();
    }
    assert_eq!(
        objects
            .remove_torn(read_wall_clock().plus_ms(-60_000))
            .await
            .unwrap(),
        0,
        "too young"
    );
    assert_eq!(objects.remove_torn(compute_tomorrow()).await.unwrap(), 1);
    assert_eq!(objects.remove_torn(compute_tomorrow()).await.unwrap(), 0);
    assert!(objects.get(&whole).await.unwrap() == bytes);
}

#[tokio::test]
async fn object_stored_again_during_collection_stays() {
    let world = World::new().await;
    let objects = world.queue.objects();
    let bytes = Bytes::from(vec![7_u8; 300 * 1024]);
    let object = objects.put(bytes.clone()).await.unwrap();
    let found = find_garbage(&world, compute_tomorrow()).await;
    objects.put(bytes.clone()).await.unwrap();
    assert!(!objects.remove(&found[0]).await.unwrap());
    assert!(objects.get(&object).await.unwrap() == bytes);

    assert_eq!(collect_garbage(&world).await, 1);
    let tombstones = find_garbage(&world, compute_tomorrow()).await;
    objects.put(bytes.clone()).await.unwrap();
    for tombstone in &tombstones {
        assert!(!objects.remove(tombstone).await.unwrap());
    }
    assert!(objects.get(&object).await.unwrap() == bytes);
}

#[tokio::test]
async fn last_stored_object_survives_collection_races() {
    let world = World::new().await;
    let bytes = Bytes::from(vec![9_u8; 200 * 1024]);
    let objects = world.queue.objects();
    objects.put(bytes.clone()).await.unwrap();
    for round in 0..50 {
        let found = find_garbage(&world, compute_tomorrow()).await;
        let remove = async {
            for one in &found {
                objects.remove(one).await.unwrap();
            }
        };
        let ((), stored) = tokio::join!(remove, objects.put(bytes.clone()));
        assert!(objects.get(&stored.unwrap()).await.unwrap() == bytes);
        // Every second round begins with a tombstone.
        if round % 2 == 0 {
            collect_garbage(&world).await;
        }
    }
}

/// Snapshot of a stored pack with these bytes.
async fn stored_snapshot(world: &World, bytes: &str) -> domain::WorkspaceSnapshot {
    let pack = world.queue.objects().put(Bytes::from(bytes.to_owned())).await;
    domain::WorkspaceSnapshot {
        base: "0".repeat(40).parse().unwrap(),
        branch: None,
        head: None,
        commit: "1".repeat(40).parse().unwrap(),
        pack: pack.unwrap(),
        files_changed: 1,
        omitted: Vec::new(),
        ignored: Vec::new(),
    }
}

/// Appends facts to the journal of a run.
async fn journal_of(world: &World, number: u64, facts: Vec<Fact>) {
    let mut last = 0;
    for (position, fact) in facts.into_iter().enumerate() {
        let entry = JournalEntry {
            fact,
            ..build_entry(position as u64, &format!("{number}-{position}"))
        };
        let appended = world
            .queue
            .journal()
            .append(&build_run_id(number), last, &entry)
            .await;
        last = appended.unwrap();
    }
}

const fn build_snapshot_fact(snapshot: domain::WorkspaceSnapshot) -> Fact {
    Fact::SnapshotTaken {
        snapshot,
        repository: None,
    }
}

/// Fact that a lost workspace was restored from a snapshot.
fn build_restored_fact(snapshot: &domain::WorkspaceSnapshot) -> Fact {
    let workspace = serde_json::json!({
        "executor": "http://10.0.0.7:7403", "id": "w", "base": snapshot.base, "sandbox": "L1", "tools": [],
        "instructions": "",
    });
    Fact::WorkspaceRestored {
        workspace: serde_json::from_value(workspace).unwrap(),
        snapshot: Some(snapshot.clone()),
        repository: None,
    }
}

#[tokio::test]
async fn collector_keeps_last_snapshot_per_run() {
    let world = World::new().await;
    let mut snapshots = Vec::new();
    for number in 0..7 {
        snapshots.push(stored_snapshot(&world, &format!("pack {number}")).await);
    }
    let [first, second, third, proven, fourth, other, ended] = snapshots.try_into().unwrap();
    let output = serde_json::json!({ "phase": "prove", "proof": { "level": "E1", "rows": [] } });
    let proof = Fact::PhaseFinished {
        output: serde_json::from_value(output).unwrap(),
    };
    let over = Fact::RunFinished {
        reason: domain::StopReason::Completed,
    };
    let facts = vec![
        build_snapshot_fact(first.clone()),
        build_snapshot_fact(second.clone()),
        build_snapshot_fact(proven.clone()),
        proof.clone(),
        build_snapshot_fact(third.clone()),
        build_restored_fact(&third),
        build_snapshot_fact(fourth.clone()),
    ];
    journal_of(&world, 1, facts).await;
    // A finished run returns to no earlier state.
    journal_of(
        &world,
        2,
        vec![
            build_snapshot_fact(other.clone()),
            proof,
            build_snapshot_fact(ended.clone()),
            over,
        ],
    )
    .await;
    let found: Vec<String> = find_garbage(&world, compute_tomorrow())
        .await
        .into_iter()
        .map(|one| one.name)
        .collect();
    for gone in [&first, &second, &third, &other] {
        assert!(found.contains(&gone.pack.sha256), "{:?}", gone.pack);
    }
    for kept in [&proven, &fourth, &ended] {
        assert!(!found.contains(&kept.pack.sha256), "{:?}", kept.pack);
    }
}

#[tokio::test]
async fn partial_upload_reads_back_until_removed() {
    let world = World::new().await;
    let objects = world.queue.objects();
    let bytes: Vec<u8> = (0..400_000_u32).map(|number| (number * 7 % 251) as u8).collect();
    let mut upload = objects.upload();
    for part in bytes.chunks(65_536) {
        upload.push(part).await.unwrap();
    }
    assert_eq!(upload.size_bytes(), 400_000);
    let stored = upload.finish().await.unwrap();
    assert!(stored.is_new && objects.get(&stored.object).await.unwrap() == bytes);
    assert_eq!(
        objects.put(Bytes::from(bytes.clone())).await.unwrap(),
        stored.object
    );
    assert!(
        !objects.remove_stored(&stored).await.unwrap(),
        "somebody stored it since"
    );

    let mut second = objects.upload();
    second.push(&bytes).await.unwrap();
    let again = second.finish().await.unwrap();
    assert!(!again.is_new && !objects.remove_stored(&again).await.unwrap());
    assert!(objects.get(&stored.object).await.unwrap() == bytes);
    let before = messages_of_the_store(&world).await;

    let mut dropped = objects.upload();
    dropped.push(&bytes).await.unwrap();
    dropped.discard().await;
    assert_eq!(
        messages_of_the_store(&world).await,
        before,
        "nothing is left of it"
    );
    let mut alone = objects.upload();
    alone.push(b"of one run").await.unwrap();
    let alone = alone.finish().await.unwrap();
    assert!(objects.remove_stored(&alone).await.unwrap());
    assert!(objects.get(&alone.object).await.is_err());
}

#[tokio::test]
async fn full_store_is_reported_and_recovers() {
    let world = World::new().await;
    let (raw, objects) = (world.raw().await, world.queue.objects());
    let mut config = raw
        .get_stream("OBJ_objects")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    config.max_bytes = 400_000;
    raw.update_stream(&config).await.unwrap();
    let mut upload = objects.upload();
    let error = match upload.push(&vec![7; 1 << 20]).await {
        Err(error) => {
            upload.discard().await;
            error
        }
        Ok(()) => upload.finish().await.unwrap_err(),
    };
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    let mut small = objects.upload();
    small.push(&[8; 100_000]).await.unwrap();
    small.finish().await.unwrap();
}
