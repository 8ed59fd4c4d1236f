//! Creation, migration and refusal of streams and consumers.

use std::{path::Path, time::Duration};

use async_nats::jetstream::stream;
use domain::cause::format_error_chain;
use queue::{Error, Queue, Settings};
use servers::NatsServer;

use crate::world::{
    World, await_soon, build_entry, build_run_id, build_server_settings, build_ticket_key, open_queue,
};

#[tokio::test]
async fn ensuring_twice_or_at_once_changes_nothing() {
    let server = NatsServer::start().await.unwrap();
    let queue = Queue::connect(&build_server_settings(&server), "test")
        .await
        .unwrap();
    let (a, b, c) = tokio::join!(
        queue.ensure_topology(),
        queue.ensure_topology(),
        queue.ensure_topology()
    );
    a.and(b).and(c).unwrap();
    queue.ensure_topology().await.unwrap();
    queue.ping().await.unwrap();
}

async fn stream_config(world: &World, name: &str) -> stream::Config {
    let stream = world.raw().await.get_stream(name).await.unwrap();
    stream.cached_info().config.clone()
}

/// Changes a stream without the crate. The label names the release that made the change.
async fn change_stream_config(
    world: &World,
    name: &str,
    release: Option<u64>,
    change: impl FnOnce(&mut stream::Config),
) {
    let mut config = stream_config(world, name).await;
    match release {
        Some(release) => drop(config.metadata.insert(LABEL.to_owned(), release.to_string())),
        None => drop(config.metadata.remove(LABEL)),
    }
    change(&mut config);
    world.raw().await.update_stream(config).await.unwrap();
}

/// Bytes of the files of a folder.
fn size_of_files(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap();
    // The server may replace a file at this moment.
    files
        .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
        .sum()
}

const LABEL: &str = "journeyman.topology";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn older_stream_migrates_and_keeps_messages() {
    let world = World::new().await;
    let log = world.queue.triggers();
    world.trigger(1, "comment:1").await;
    change_stream_config(&world, "TRIGGERS", None, |config| {
        config.max_age = DAY;
        config.duplicate_window = Duration::from_secs(60);
        config.allow_direct = false;
        config.max_bytes = 1 << 30;
    })
    .await;
    let (a, b) = tokio::join!(world.queue.ensure_topology(), world.queue.ensure_topology());
    a.and(b).unwrap();
    let after = stream_config(&world, "TRIGGERS").await;
    assert_eq!((after.max_age, after.allow_direct), (30 * DAY, true));
    assert_eq!(after.duplicate_window, Duration::from_secs(120));
    assert_eq!(after.max_bytes, 1 << 30, "an operator's own limit stays");
    assert_eq!(after.metadata[LABEL], "7");
    assert_eq!(log.read_after(&build_ticket_key(1), 0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn other_compression_migrates_in_place() {
    use stream::Compression::{None as Uncompressed, S2};
    let wanted = [
        ("JOURNAL", S2),
        ("OBJ_objects", S2),
        ("KV_runs", Uncompressed),
        ("DELIVERIES", Uncompressed),
        ("WAKEUPS", Uncompressed),
    ];
    let world = World::new().await;
    let journal = world.queue.journal();
    for (name, compression) in &wanted {
        let other = if *compression == S2 { Uncompressed } else { S2 };
        change_stream_config(&world, name, Some(6), |config| {
            config.compression = Some(other);
        })
        .await;
    }
    let first = journal
        .append(&build_run_id(1), 0, &build_entry(0, "a"))
        .await
        .unwrap();
    world.queue.ensure_topology().await.unwrap();
    for (name, compression) in wanted {
        let config = stream_config(&world, name).await;
        assert_eq!(config.compression, Some(compression), "{name}");
    }
    journal
        .append(&build_run_id(1), first, &build_entry(1, "b"))
        .await
        .unwrap();
    let entries = journal.read(&build_run_id(1)).await.unwrap();
    assert_eq!(entries.len(), 2, "entries from before the change stay readable");
}

#[tokio::test]
async fn compressed_files_survive_server_restart() {
    const ENTRIES: u64 = 40;
    let mut world = World::new().await;
    let journal = world.queue.journal();
    // 40 entries of 250 kB are more than one file of the server, so it begins a second one.
    let long = |position: u64| domain::JournalEntry {
        fact: domain::Fact::StopRequested {
            by: format!("{position} ").repeat(100_000),
        },
        ..build_entry(position, &format!("n{position}"))
    };
    let mut last = 0;
    for position in 0..ENTRIES {
        last = journal
            .append(&build_run_id(1), last, &long(position))
            .await
            .unwrap();
    }
    let plain = world.raw().await.get_stream("JOURNAL").await.unwrap();
    let plain = plain.cached_info().state.bytes;
    assert!(plain > 8 << 20, "{plain}");
    let files = NatsServer::stream_files(world.server.data_dir(), "JOURNAL").join("msgs");
    // The server compresses the full file in the background.
    await_soon(async {
        while size_of_files(&files) > plain / 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    world.server.restart().await.unwrap();
    let queue = Queue::connect(&build_server_settings(&world.server), "test")
        .await
        .unwrap();
    let entries = queue.journal().read(&build_run_id(1)).await.unwrap();
    let positions: Vec<u64> = entries.iter().map(|(_, entry)| entry.position).collect();
    assert_eq!(positions, (0..ENTRIES).collect::<Vec<_>>());
}

#[tokio::test]
async fn lossy_or_fixed_change_is_refused() {
    let world = World::new().await;
    change_stream_config(&world, "TRIGGERS", Some(1), |config| config.max_age = 60 * DAY).await;
    let error = world.queue.ensure_topology().await.unwrap_err();
    assert!(matches!(error, Error::Topology { .. }));
    assert_eq!(
        error.to_string(),
        "stream TRIGGERS cannot be used: max_age is 5184000000000000, wanted 2592000000000000: the server would \
         delete records at once: change it by hand once they may go (`nats stream edit`)"
    );
    assert_eq!(stream_config(&world, "TRIGGERS").await.max_age, 60 * DAY);

    change_stream_config(&world, "TRIGGERS", Some(1), |config| {
        config.max_age = 30 * DAY;
        config.subjects.push("elsewhere.>".to_owned());
    })
    .await;
    let error = world.queue.ensure_topology().await.unwrap_err().to_string();
    assert!(
        error.starts_with("stream TRIGGERS cannot be used: subjects is ")
            && error.contains("stop every service"),
        "{error}"
    );
}

#[tokio::test]
async fn late_older_release_keeps_newer_limits() {
    let world = World::new().await;
    change_stream_config(&world, "JOURNAL", Some(8), |config| config.max_age = 7 * DAY).await;
    change_stream_config(&world, "TRIGGERS", Some(8), |config| config.max_age = 60 * DAY).await;
    world.queue.ensure_topology().await.unwrap();
    for (stream, days) in [("JOURNAL", 7), ("TRIGGERS", 60)] {
        let config = stream_config(&world, stream).await;
        assert_eq!(
            (config.max_age, config.metadata[LABEL].as_str()),
            (days * DAY, "8")
        );
    }
}

#[tokio::test]
async fn dead_letter_retention_follows_smaller_settings() {
    let world = World::new().await;
    let kept = async |days: u32, mib: u32| {
        let settings = queue::Settings {
            dead_letter_days: days,
            dead_letter_mib: mib,
            ..build_server_settings(&world.server)
        };
        open_queue(&settings).await;
        let config = stream_config(&world, "DEAD").await;
        (config.max_age, config.max_bytes)
    };
    assert_eq!(kept(90, 0).await, (90 * DAY, -1));
    assert_eq!(kept(7, 64).await, (7 * DAY, 64 << 20));
    assert_eq!(kept(0, 0).await, (Duration::ZERO, -1));
}

#[tokio::test]
async fn consumer_follows_settings_and_keeps_position() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let held = await_soon(tokens.next()).await.unwrap();
    let patient = Settings {
        ack_wait_ms: 90_000,
        ..build_server_settings(&world.server)
    };
    open_queue(&patient).await;
    let stream = world.raw().await.get_stream("WAKEUPS").await.unwrap();
    let info = stream.consumer_info("planners").await.unwrap();
    assert_eq!(info.config.ack_wait, Duration::from_secs(90));
    assert_eq!(
        info.num_ack_pending, 1,
        "the token is still in its holder's hands"
    );
    held.finish().await.unwrap();
    log.wake(&build_ticket_key(2)).await.unwrap();
    assert_eq!(await_soon(tokens.next()).await.unwrap().fence().stamp().epoch, 1);
}

#[tokio::test]
async fn impossible_replicas_are_refused_with_reason() {
    let world = World::new().await;
    let three = Settings {
        replicas: 3,
        ..build_server_settings(&world.server)
    };
    let queue = Queue::connect(&three, "test").await.unwrap();
    let error = queue.ensure_topology().await.unwrap_err();
    assert!(matches!(error, Error::Topology { .. }), "{error}");
    assert!(
        format_error_chain(&error).contains("stream DELIVERIES cannot be changed: "),
        "{error}"
    );
}

#[tokio::test]
async fn fences_rise_after_token_stream_recreation() {
    let world = World::new().await;
    let log = world.queue.triggers();
    for _ in 0..3 {
        log.wake(&build_ticket_key(1)).await.unwrap();
        let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
        await_soon(tokens.next()).await.unwrap().finish().await.unwrap();
    }
    log.wake(&build_ticket_key(1)).await.unwrap();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    let before = await_soon(tokens.next()).await.unwrap().fence();
    world.raw().await.delete_stream("WAKEUPS").await.unwrap();
    world.queue.ensure_topology().await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    let after = await_soon(tokens.next()).await.unwrap().fence();
    assert!(after > before, "{after} {before}");
    assert_eq!((after.stamp().epoch, after.stamp().sequence), (2, 1));
}

#[tokio::test]
async fn dead_server_at_start_is_named() {
    let mut server = NatsServer::start().await.unwrap();
    let settings = Settings {
        url: server.url(),
        ..Settings::default()
    };
    server.stop().await;
    let error = Queue::connect(&settings, "test").await.err().unwrap();
    let own = format!("nats is unavailable: {}", settings.addresses());
    assert_eq!(error.to_string(), own);
    assert!(std::error::Error::source(&error).is_some());
    let all = format_error_chain(&error);
    assert!(all.starts_with(&own), "{all}");
    assert_eq!(all.matches("refused").count(), 1, "{all}");
}
