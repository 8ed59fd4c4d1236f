//! Backup and restore.

use std::os::unix::fs::PermissionsExt as _;

use domain::TicketRow;
use queue::{Error, KeyValueBucket, Queue, Settings};
use servers::NatsServer;

use crate::world::{
    World, build_entry, build_run_id, build_server_settings, build_ticket_key, build_trigger,
};

#[tokio::test]
async fn backup_restores_all_streams_with_sequences() {
    let world = World::new().await;
    let (triggers, journal) = (world.queue.triggers(), world.queue.journal());
    for number in 1..=3 {
        triggers
            .append(&build_trigger(&build_ticket_key(number), "k"))
            .await
            .unwrap();
        journal
            .append(&build_run_id(number), 0, &build_entry(0, "n"))
            .await
            .unwrap();
    }
    world.queue.forget_ticket(&build_ticket_key(1)).await.unwrap();
    let row = TicketRow {
        cursor: 7,
        ..TicketRow::default()
    };
    let rows = world.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    rows.put(&build_ticket_key(2).to_string(), &row, None)
        .await
        .unwrap();
    let large = bytes::Bytes::from(vec![7; 700 << 10]);
    let object = world.queue.objects().put(large.clone()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let mut kept = Vec::new();
    world
        .queue
        .back_up(&backup, |stream| kept.push(stream.clone()))
        .await
        .unwrap();
    let mode = std::fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "other users of the machine read no journal");

    let empty = NatsServer::start().await.unwrap();
    let other = Queue::connect(&build_server_settings(&empty), "test")
        .await
        .unwrap();
    let mut restored = Vec::new();
    other
        .restore(&backup, |stream| restored.push(stream.clone()))
        .await
        .unwrap();
    let counts = |streams: &[queue::StreamTransfer]| -> Vec<(String, u64)> {
        streams
            .iter()
            .map(|kept| (kept.stream.clone(), kept.messages))
            .collect()
    };
    assert_eq!(counts(&restored), counts(&kept));
    other.ensure_topology().await.unwrap();
    assert_eq!(
        journal.read(&build_run_id(2)).await.unwrap(),
        other.journal().read(&build_run_id(2)).await.unwrap()
    );
    assert_eq!(
        other.journal().read(&build_run_id(1)).await.unwrap(),
        [],
        "what was purged stays away"
    );
    let (there, here) = (other.triggers(), &triggers);
    assert_eq!(there.newest().await.unwrap(), here.newest().await.unwrap());
    let known = there
        .append(&build_trigger(&build_ticket_key(3), "k"))
        .await
        .unwrap();
    assert!(
        matches!(known, queue::AppendOutcome::Known(_)),
        "a key that was known is known"
    );
    let found = other
        .table::<TicketRow>(KeyValueBucket::Tickets)
        .get(&build_ticket_key(2).to_string())
        .await
        .unwrap();
    assert_eq!(found.map(|(row, _)| row.cursor), Some(7));
    assert_eq!(other.objects().get(&object).await.unwrap(), large);
}

#[tokio::test]
async fn restore_refuses_streams_and_incomplete_backup() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    world.queue.back_up(&backup, |_| {}).await.unwrap();
    let refused = world.queue.restore(&backup, |_| {}).await.unwrap_err();
    assert!(matches!(refused, Error::Topology { .. }), "{refused}");
    assert!(
        world.queue.back_up(&backup, |_| {}).await.is_err(),
        "a backup is never written over"
    );
    std::fs::remove_file(backup.join("TRIGGERS").join("backup.json")).unwrap();
    let empty = NatsServer::start().await.unwrap();
    let settings = Settings {
        url: empty.url(),
        ..Settings::default()
    };
    let other = Queue::connect(&settings, "test").await.unwrap();
    let missing = other.restore(&backup, |_| {}).await.unwrap_err();
    assert!(missing.to_string().contains("TRIGGERS"), "{missing}");
    other.ensure_topology().await.unwrap();
}
