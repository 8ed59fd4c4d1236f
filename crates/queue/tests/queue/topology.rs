//! Creating, checking and refusing.

use queue::{Error, Queue, Settings};
use servers::NatsServer;

use crate::world::{World, settings, soon, ticket};

#[tokio::test]
async fn ensuring_twice_or_at_once_changes_nothing() {
    let server = NatsServer::start().await.unwrap();
    let queue = Queue::connect(&settings(&server), "test").await.unwrap();
    let (a, b, c) = tokio::join!(
        queue.ensure_topology(),
        queue.ensure_topology(),
        queue.ensure_topology()
    );
    a.and(b).and(c).unwrap();
    queue.ensure_topology().await.unwrap();
    queue.ping().await.unwrap();
}

#[tokio::test]
async fn a_stream_that_differs_is_refused_with_the_fields() {
    let world = World::new().await;
    let raw = world.raw().await;
    let mut config = raw
        .get_stream("TRIGGERS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    config.max_age = std::time::Duration::from_secs(3600);
    raw.update_stream(config).await.unwrap();
    let error = world.queue.ensure_topology().await.unwrap_err();
    assert!(matches!(error, Error::Topology(_)));
    assert_eq!(
        error.to_string(),
        "stream TRIGGERS differs from what is wanted: max_age is 3600000000000, wanted 2592000000000000"
    );
}

#[tokio::test]
async fn a_consumer_that_differs_is_refused_with_the_fields() {
    let world = World::new().await;
    let stream = world.raw().await.get_stream("WAKEUPS").await.unwrap();
    let mut config = stream.consumer_info("planners").await.unwrap().config;
    config.max_ack_pending = 7;
    let config = async_nats::jetstream::consumer::pull::Config {
        durable_name: config.durable_name,
        ack_wait: config.ack_wait,
        max_deliver: config.max_deliver,
        filter_subject: config.filter_subject,
        max_ack_pending: config.max_ack_pending,
        ..Default::default()
    };
    stream.update_consumer(config).await.unwrap();
    let error = world.queue.ensure_topology().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "consumer planners of WAKEUPS differs from what is wanted: max_ack_pending is 7, wanted 10000"
    );
}

#[tokio::test]
async fn fences_keep_rising_when_a_token_stream_was_made_anew() {
    let world = World::new().await;
    let log = world.queue.triggers();
    for _ in 0..3 {
        log.wake(&ticket(1)).await.unwrap();
        let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
        soon(tokens.next()).await.unwrap().finish().await.unwrap();
    }
    log.wake(&ticket(1)).await.unwrap();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    let before = soon(tokens.next()).await.unwrap().fence();
    world.raw().await.delete_stream("WAKEUPS").await.unwrap();
    world.queue.ensure_topology().await.unwrap();
    log.wake(&ticket(1)).await.unwrap();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    let after = soon(tokens.next()).await.unwrap().fence();
    assert!(after > before, "{after} {before}");
    assert_eq!((after.stamp().epoch, after.stamp().sequence), (2, 1));
}

#[tokio::test]
async fn a_dead_server_is_named_at_start() {
    let mut server = NatsServer::start().await.unwrap();
    let settings = Settings {
        url: server.url(),
        ..Settings::default()
    };
    server.stop().await;
    let error = Queue::connect(&settings, "test")
        .await
        .err()
        .map(|error| error.to_string())
        .unwrap();
    assert!(
        error.starts_with("nats is unavailable: nats://127.0.0.1:"),
        "{error}"
    );
}
