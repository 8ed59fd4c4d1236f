//! A full NATS store: webhooks are accepted, and every ticket continues when storage is available.

use std::collections::HashSet;

use domain::{Fact, StopReason};
use queue::{Error, Queue};
use testkit::{NatsCluster, NatsOptions, NatsServer};

use crate::start_world_with_settings;

/// Store size, of which Journeyman may use nine tenths.
const STORE_BYTES: u64 = 20_000_000;
/// Part of the journaled reason while the run's snapshot does not fit.
const WORDS: &str = "file store is full";

fn build_small_options() -> NatsOptions {
    NatsOptions {
        max_file_store: Some(STORE_BYTES),
        ..NatsOptions::default()
    }
}

/// Stores unreferenced objects until the store refuses them, and returns their names.
async fn fill_objects(queue: &Queue) -> HashSet<String> {
    let mut names = HashSet::new();
    for bytes in [2 << 20, 64 << 10, 1 << 10] {
        loop {
            let noise: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(bytes).collect();
            match queue.objects().put(noise.into()).await {
                Ok(object) => drop(names.insert(object.sha256)),
                Err(Error::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
            assert!(names.len() < 10_000, "nothing is refused");
        }
    }
    names
}

async fn free_objects(queue: &Queue, names: &HashSet<String>) {
    let later = bootstrap::read_wall_clock().plus_ms(3_600_000);
    let mut from = Some(0);
    while let Some(place) = from {
        let found = queue.objects().unreferenced(later, place).await.unwrap();
        for garbage in found
            .garbage
            .iter()
            .filter(|garbage| names.contains(&garbage.name))
        {
            assert!(queue.objects().remove(garbage).await.unwrap());
        }
        from = found.next;
    }
}

async fn expect_work_goes_on(url: &str, replicas: &str) {
    let world = start_world_with_settings(&[
        ("NATS__URL", url),
        ("NATS__REPLICAS", replicas),
        ("PLANNER__RETRY_BASE_MS", "2000"),
    ])
    .await;
    let queue = world.queue().await.unwrap();
    let limit = queue.store_use().await.unwrap().limit;
    assert!((8 << 20..STORE_BYTES * 9 / 10).contains(&limit), "{limit}");
    let noise = fill_objects(&queue).await;
    assert!(queue.objects().used_percent().await.unwrap() >= 99);

    for number in 0..50 {
        let body = format!("{{\"webhookEvent\":\"jira:unknown\",\"number\":{number}}}");
        assert_eq!(world.deliver("jira", "", &body).await.unwrap(), 202);
    }
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    world
        .until("a run without room for its snapshot", async || {
            let journal = world.client.runs().journal(&run).await.ok()?;
            let is_refused = |fact: &Fact| match fact {
                Fact::WorkspaceFailed { detail, .. } => detail.contains(WORDS),
                _ => false,
            };
            journal.iter().any(|entry| is_refused(&entry.fact)).then_some(())
        })
        .await
        .unwrap();
    // The API and the services stay ready.
    let ready = reqwest::get(format!("{}/readyz", world.url)).await.unwrap();
    assert_eq!(ready.status(), 200);

    free_objects(&queue, &noise).await;
    let (_, reason) = world.finished(&run).await.unwrap();
    assert_eq!(reason, StopReason::Completed);
    world.stop_with_dead_letters().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn full_store_of_one_server_delays_tickets() {
    let server = NatsServer::start_with(build_small_options()).await.unwrap();
    Box::pin(expect_work_goes_on(&server.url(), "1")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_store_of_three_servers_delays_tickets() {
    let cluster = NatsCluster::start(build_small_options()).await.unwrap();
    Box::pin(expect_work_goes_on(&cluster.url(), "3")).await;
}
