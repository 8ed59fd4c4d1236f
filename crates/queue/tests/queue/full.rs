//! Full store: large objects are refused first; webhooks and records that finish work always find room.

use bootstrap::read_wall_clock;
use bytes::Bytes;
use domain::RecordKind;
use queue::{DeadLetter, Error, Queue, Settings, WebhookDelivery};
use servers::{NatsCluster, NatsOptions, NatsServer};

use crate::world::{
    await_soon, build_delivery, build_entry, build_run_id, build_ticket_key, build_trigger, open_queue,
    settings_for,
};

const STORE_MIB: u32 = 16;

fn build_limited_options() -> NatsOptions {
    NatsOptions {
        max_file_store: Some(20 << 20),
        ..NatsOptions::default()
    }
}

/// Pseudorandom bytes, different for each round.
fn generate_noise(round: u64, bytes: usize) -> Bytes {
    let mut state = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..bytes).map(|_| byte()).collect()
}

/// Stores objects until one is refused; returns the number of stored ones.
async fn fill_objects(queue: &Queue, bytes: usize) -> u64 {
    for round in 0..1_000 {
        match await_soon(queue.objects().put(generate_noise(round, bytes))).await {
            Ok(_) => {}
            Err(Error::Full { .. }) => return round,
            Err(error) => panic!("object {round}: {error:?}"),
        }
    }
    panic!("nothing was refused")
}

/// Checks that all work continues while the object store is full.
async fn expect_work_goes_on(queue: &Queue) {
    assert!(queue.objects().used_percent().await.unwrap() >= 95);
    for number in 0..20 {
        let new = await_soon(queue.deliveries().publish(&build_delivery(&number.to_string()))).await;
        assert!(new.unwrap(), "webhook {number}");
    }
    let large = WebhookDelivery {
        body: generate_noise(7, 1 << 20),
        ..build_delivery("large")
    };
    await_soon(queue.deliveries().publish(&large)).await.unwrap();
    await_soon(
        queue
            .triggers()
            .append(&build_trigger(&build_ticket_key(1), "comment:1")),
    )
    .await
    .unwrap();
    await_soon(queue.journal().append(&build_run_id(1), 0, &build_entry(0, "n")))
        .await
        .unwrap();
    assert_eq!(queue.journal().read(&build_run_id(1)).await.unwrap().len(), 1);
    for role in [
        queue::NatsRole::Ingest,
        queue::NatsRole::Planner,
        queue::NatsRole::Reporter,
    ] {
        queue.probe(role).await.unwrap();
    }
    await_soon(queue.forget_ticket(&build_ticket_key(1)))
        .await
        .unwrap();
}

async fn expect_objects_are_collected(queue: &Queue) {
    let later = read_wall_clock().plus_ms(3_600_000);
    let found = queue.objects().unreferenced(later, 0).await.unwrap();
    assert!(!found.garbage.is_empty());
    for garbage in &found.garbage {
        assert!(queue.objects().remove(garbage).await.unwrap());
    }
    queue.objects().put(generate_noise(9_999, 2 << 20)).await.unwrap();
}

/// Connects to servers with little room and creates the streams.
async fn connect_limited(url: String, replicas: usize) -> Queue {
    let settings = Settings {
        store_mib: STORE_MIB,
        replicas,
        ..settings_for(url)
    };
    open_queue(&settings).await
}

async fn expect_full_objects_stop_nothing(queue: &Queue) {
    assert!(fill_objects(queue, 2 << 20).await >= 2);
    // Small objects, which include bodies of records, fill the rest.
    fill_objects(queue, 100 << 10).await;
    expect_work_goes_on(queue).await;
    expect_objects_are_collected(queue).await;
}

#[tokio::test]
async fn full_objects_one_server_work_goes_on() {
    let server = NatsServer::start_with(build_limited_options()).await.unwrap();
    expect_full_objects_stop_nothing(&connect_limited(server.url(), 1).await).await;
}

#[tokio::test]
async fn full_objects_three_servers_work_goes_on() {
    let cluster = NatsCluster::start(build_limited_options()).await.unwrap();
    expect_full_objects_stop_nothing(&connect_limited(cluster.url(), 3).await).await;
    for server in cluster.servers() {
        assert_eq!(server.monitor("/healthz").await.unwrap().0, 200);
    }
}

#[tokio::test]
async fn scarce_room_refuses_requests_before_webhooks() {
    let server = NatsServer::start_with(build_limited_options()).await.unwrap();
    let queue = connect_limited(server.url(), 1).await;
    let mut refused = false;
    for number in 0..1_000_u64 {
        let mut filler = build_trigger(&build_ticket_key(number + 1), "comment:1");
        filler.actor = None;
        let phrase = "x".repeat(200 << 10);
        let filler = crate::world::trigger_with(&build_ticket_key(number + 1), filler.key.as_str(), phrase);
        match await_soon(queue.triggers().append(&filler)).await {
            Ok(_) => {}
            Err(Error::Full { .. }) => {
                refused = true;
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(refused);
    let used = queue.store_use().await.unwrap();
    assert!(used.percent() < 90, "{used:?}");
    await_soon(queue.journal().append(&build_run_id(1), 0, &build_entry(0, "n")))
        .await
        .unwrap();
    assert!(queue.deliveries().publish(&build_delivery("1")).await.unwrap());
    queue.triggers().wake(&build_ticket_key(1)).await.unwrap();
}

#[tokio::test]
async fn smaller_server_takes_smaller_limits() {
    for (room_mib, is_cluster) in [(20, false), (20, true), (4, false)] {
        let options = NatsOptions {
            max_file_store: Some(room_mib << 20),
            ..NatsOptions::default()
        };
        let (_cluster, _server, url, replicas);
        if is_cluster {
            let cluster = NatsCluster::start(options).await.unwrap();
            (url, replicas) = (cluster.url(), 3);
            _cluster = cluster;
        } else {
            let server = NatsServer::start_with(options).await.unwrap();
            (url, replicas) = (server.url(), 1);
            _server = server;
        }
        let settings = |store_mib| Settings {
            store_mib,
            replicas,
            ..settings_for(url.clone())
        };
        // The second start finds the limits of the first, and requests more again.
        for store_mib in [4096, 4096, 16] {
            let queue = open_queue(&settings(store_mib)).await;
            let used = queue.store_use().await.unwrap();
            assert!(used.limit <= (room_mib * 9 / 10) << 20, "{used:?}");
            assert_eq!(used.limit > 0, room_mib >= 16, "{used:?}");
        }
    }
}

#[tokio::test]
async fn topology_of_former_release_keeps_records() {
    let server = NatsServer::start().await.unwrap();
    let unlimited = Settings {
        store_mib: 0,
        ..settings_for(server.url())
    };
    let queue = open_queue(&unlimited).await;
    let mut objects = Vec::new();
    for round in 0..6 {
        objects.push(queue.objects().put(generate_noise(round, 2 << 20)).await.unwrap());
    }
    for round in 0..10 {
        let letter = DeadLetter {
            what: RecordKind::Delivery,
            id: round.to_string(),
            ticket: None,
            reason: "a test".to_owned(),
            at: read_wall_clock(),
        };
        let body = generate_noise(round, 100 << 10);
        queue.dead_letters().publish(&letter, body).await.unwrap();
    }
    let letters = queue.dead_letters().count().await.unwrap();

    let limited = Settings {
        store_mib: STORE_MIB,
        ..unlimited
    };
    let queue = open_queue(&limited).await;
    for object in &objects {
        queue.objects().get(object).await.unwrap();
    }
    assert_eq!(queue.dead_letters().count().await.unwrap(), letters);
    let refused = queue.objects().put(generate_noise(99, 2 << 20)).await;
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
}
