//! Large bodies, objects and dead letters.

use bytes::Bytes;
use domain::ObjectRef;
use queue::{DeadLetter, Error};

use crate::world::{World, now, ticket, trigger_with};

#[tokio::test]
async fn a_record_over_the_servers_limit_comes_back_whole() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let large = trigger_with(&ticket(1), "comment:1", "x".repeat(3 * 1024 * 1024));
    log.append(&large).await.unwrap();
    let read = log.read_after(&ticket(1), 0).await.unwrap();
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
async fn a_missing_object_is_told_by_name() {
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
        what: "ticket".to_owned(),
        id: format!("line\nbreak ü {id}"),
        ticket: Some(ticket(1)),
        reason: "five takeovers without progress".to_owned(),
        at: now(),
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
