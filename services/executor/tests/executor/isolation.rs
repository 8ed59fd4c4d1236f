//! Tests that an executor accepts no work while its commands reach forbidden addresses.

use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::*;

pub(super) async fn check_health(world: &World) -> ServingStatus {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", world.address)).unwrap();
    let mut client = HealthClient::new(endpoint.connect().await.unwrap());
    let request = HealthCheckRequest {
        service: "journeyman.executor.v1.ExecutorService".to_owned(),
    };
    client.check(request).await.unwrap().into_inner().status()
}

async fn await_serving_status(world: &World, wanted: ServingStatus) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while check_health(world).await != wanted {
        assert!(tokio::time::Instant::now() < deadline, "never {wanted:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_70_reachable_forbidden_address_blocks_readiness() {
    let forbidden = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = forbidden.local_addr().unwrap();
    let world = World::start_as(1, |_, settings| {
        settings.without = vec![executor::ConfinementMechanism::Namespaces];
        settings.forbidden_addresses = vec![address.to_string()];
    })
    .await;
    // The first test has run as soon as the listener accepts its connection.
    forbidden.accept().await.unwrap();
    assert_eq!(check_health(&world).await, ServingStatus::NotServing);
    let refused = world
        .try_open(1, RunFence::new(1, 5, 1), |_| {})
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // Planners receive the reason, and its end.
    let mut statuses = world.watch_status().await;
    while statuses.message().await.unwrap().unwrap().unready
        != "commands reach addresses that executor.forbidden_addresses names"
    {}
    drop(forbidden);
    while !statuses.message().await.unwrap().unwrap().unready.is_empty() {}
    await_serving_status(&world, ServingStatus::Serving).await;
    world.open(1).await;
    println!("| 70 network self-test | L1 | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_70_executor_reachability_does_not_count() {
    let forbidden = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = forbidden.local_addr().unwrap();
    let world = World::start_as(1, |_, settings| {
        settings.forbidden_addresses = vec![address.to_string(), "no-such-name.example:4222".to_owned()];
    })
    .await;
    let mut statuses = world.watch_status().await;
    let status = statuses.message().await.unwrap().unwrap();
    if status.sandbox_level() == SandboxLevel::L1 {
        await_serving_status(&world, ServingStatus::Serving).await;
        println!("| 70 network self-test | L1 with namespaces | held |");
    } else {
        println!("| 70 network self-test | L1 with namespaces | not run: no namespaces here |");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_70_unresolved_names_keep_executor_unready() {
    // Reserved names (RFC 2606): no name service resolves them.
    let names = ["nats.invalid:4222", "redis.invalid:6379", "ingest.invalid:7401"].map(str::to_owned);
    for (entries, reason) in [
        (names.to_vec(), "resolves here"),
        (
            [names.to_vec(), vec!["127.0.0.1:1".to_owned()]].concat(),
            "resolves here",
        ),
        (names[..1].to_vec(), "resolves here"),
        (vec![names[0].clone(), "127.0.0.1:1".to_owned()], ""),
    ] {
        let world = World::start_as(1, |_, settings| {
            settings.without = vec![executor::ConfinementMechanism::Namespaces];
            settings.forbidden_addresses = entries.clone();
        })
        .await;
        let mut statuses = world.watch_status().await;
        let unready = loop {
            let unready = statuses.message().await.unwrap().unwrap().unready;
            if !unready.contains("is being tried") {
                break unready;
            }
        };
        assert_eq!(unready.is_empty(), reason.is_empty(), "{entries:?}: {unready}");
        assert!(unready.contains(reason), "{entries:?}: {unready}");
        let wanted = if reason.is_empty() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        await_serving_status(&world, wanted).await;
    }
    println!("| 70 network self-test: names that do not resolve | L1 | held |");
}
