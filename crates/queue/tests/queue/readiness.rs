//! Readiness: a server that answers a ping is not enough, a service needs the leaders of its streams.

use queue::{Error, NatsRole, Queue, Settings};
use servers::{NatsCluster, NatsOptions};

use crate::world::{World, await_soon, open_queue, settings_for};

const SERVICES: [NatsRole; 3] = [NatsRole::Ingest, NatsRole::Planner, NatsRole::Reporter];

async fn connect_servers(url: String, replicas: usize) -> Queue {
    let settings = Settings {
        replicas,
        ..settings_for(url)
    };
    open_queue(&settings).await
}

fn assert_unavailable(probed: &Result<(), Error>, role: NatsRole) {
    assert!(
        matches!(probed, Err(Error::Unavailable { .. })),
        "{role:?}: {probed:?}"
    );
}

#[tokio::test]
async fn missing_stream_fails_probe() {
    let world = World::new().await;
    for (stream, role) in ["DELIVERIES", "JOURNAL", "REPORTS"].into_iter().zip(SERVICES) {
        world.queue.probe(role).await.unwrap();
        world.raw().await.delete_stream(stream).await.unwrap();
        world.queue.ping().await.unwrap();
        assert_unavailable(&world.queue.probe(role).await, role);
        world.queue.ensure_topology().await.unwrap();
    }
}

#[tokio::test]
async fn stream_without_leader_fails_probe() {
    let mut cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
    // With one replica, a stream has no leader while its server is away. The two other servers still answer.
    let queue = connect_servers(cluster.url(), 1).await;
    queue.probe(NatsRole::Ingest).await.unwrap();
    let context = async_nats::jetstream::new(async_nats::connect(cluster.servers()[0].url()).await.unwrap());
    let stream = context.get_stream("DELIVERIES").await.unwrap();
    let group = stream.cached_info().cluster.clone().unwrap();
    let leader = group.leader.unwrap();
    let number: usize = leader.trim_start_matches("nats-").parse().unwrap();
    cluster.servers_mut()[number].kill();
    await_soon(async { while queue.ping().await.is_err() {} }).await;
    assert_unavailable(&queue.probe(NatsRole::Ingest).await, NatsRole::Ingest);
    queue.ping().await.unwrap();
    cluster.servers_mut()[number].restart().await.unwrap();
    await_soon(async { while queue.probe(NatsRole::Ingest).await.is_err() {} }).await;
}

#[tokio::test]
async fn lost_quorum_fails_probe() {
    let mut cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
    // The connection to the server that is left never fails, so each failure comes from a stream.
    let remaining = cluster.servers()[0].url();
    let queue = connect_servers(remaining.clone(), 3).await;
    let context = async_nats::jetstream::new(async_nats::connect(remaining).await.unwrap());
    for role in SERVICES {
        queue.probe(role).await.unwrap();
    }
    for number in [1, 2] {
        cluster.servers_mut()[number].kill();
    }
    // The server answers again for a stream when it has given up an election.
    for stream in ["DELIVERIES", "JOURNAL", "REPORTS"] {
        await_soon(async { while !is_leaderless(&context, stream).await {} }).await;
    }
    for role in SERVICES {
        assert_unavailable(&queue.probe(role).await, role);
    }
    for number in [1, 2] {
        cluster.servers_mut()[number].restart().await.unwrap();
    }
    for role in SERVICES {
        await_soon(async { while queue.probe(role).await.is_err() {} }).await;
    }
}

/// True when a server answers that the stream has no leader. During an election no server answers.
async fn is_leaderless(context: &async_nats::jetstream::Context, stream: &str) -> bool {
    let answer = context.get_stream(stream).await;
    answer.is_ok_and(|stream| stream.cached_info().cluster.clone().unwrap().leader.is_none())
}
