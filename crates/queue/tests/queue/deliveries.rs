//! Publishing and handling of webhook deliveries.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use domain::{AnyRecord, ServiceOrigin};
use queue::{DeliveryDisposition, KeyValueBucket, WebhookDelivery};
use tokio::sync::{Semaphore, mpsc};

use crate::world::{World, await_soon, build_delivery, open_queue, stays_away};

async fn messages_of(world: &World, stream: &str) -> u64 {
    world
        .raw()
        .await
        .get_stream(stream)
        .await
        .unwrap()
        .cached_info()
        .state
        .messages
}

/// Consumes deliveries with the dispositions of `decide`, and returns each delivery through a channel.
fn consume_deliveries(
    world: &World,
    decide: impl Fn(usize) -> DeliveryDisposition + Send + Sync + 'static,
) -> (
    mpsc::UnboundedReceiver<WebhookDelivery>,
    tokio::task::JoinHandle<Result<(), queue::Error>>,
) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (deliveries, shutdown, seen) = (
        world.queue.deliveries(),
        world.shutdown.clone(),
        AtomicUsize::new(0),
    );
    let decide = Arc::new(decide);
    let consuming = tokio::spawn(async move {
        deliveries
            .consume(2, shutdown, move |delivery| {
                let disposition = decide(seen.fetch_add(1, Ordering::SeqCst));
                sender.send(delivery).unwrap();
                async move { disposition }
            })
            .await
    });
    (receiver, consuming)
}

#[tokio::test]
async fn delivery_arrives_whole_and_is_deleted() {
    let world = World::new().await;
    let sent = WebhookDelivery {
        body: Bytes::from(vec![b'x'; 2 * 1024 * 1024]),
        ..build_delivery("a b\n1")
    };
    assert!(world.queue.deliveries().publish(&sent).await.unwrap());
    let (mut seen, consuming) = consume_deliveries(&world, |_| DeliveryDisposition::Done);
    let got = await_soon(seen.recv()).await.unwrap();
    assert_eq!(
        (got.source, got.id, got.event),
        (sent.source, sent.id, sent.event)
    );
    assert_eq!(got.received_at, sent.received_at);
    assert!(got.body == sent.body);
    world.shutdown.cancel();
    await_soon(consuming).await.unwrap().unwrap();
    assert_eq!(messages_of(&world, "DELIVERIES").await, 0);
}

#[tokio::test]
async fn known_delivery_is_ignored_after_handling() {
    let world = World::new().await;
    assert!(world.deliver("1").await);
    assert!(!world.deliver("1").await);
    let (mut seen, _consuming) = consume_deliveries(&world, |_| DeliveryDisposition::Done);
    await_soon(seen.recv()).await.unwrap();
    assert!(!world.deliver("1").await);
    assert!(stays_away(seen.recv()).await);
}

#[tokio::test]
async fn a_retried_delivery_comes_again() {
    let world = World::new().await;
    world.deliver("1").await;
    let (mut seen, _consuming) = consume_deliveries(&world, |count| match count {
        0 | 1 => DeliveryDisposition::Retry {
            after: Duration::from_millis(50),
        },
        _ => DeliveryDisposition::Done,
    });
    for _ in 0..3 {
        assert_eq!(await_soon(seen.recv()).await.unwrap().id, "1");
    }
    assert!(stays_away(seen.recv()).await);
    assert_eq!(messages_of(&world, "DEAD").await, 0);
}

#[tokio::test]
async fn rejected_delivery_is_dead_lettered() {
    let world = World::new().await;
    world.deliver("1").await;
    let reject = |_| DeliveryDisposition::Reject {
        reason: "not JSON".to_owned(),
    };
    let (mut seen, consuming) = consume_deliveries(&world, reject);
    await_soon(seen.recv()).await.unwrap();
    world.shutdown.cancel();
    await_soon(consuming).await.unwrap().unwrap();
    let letters = world.queue.dead_letters().list(10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].1.what.as_str(), letters[0].1.id.as_str()),
        ("delivery", "1")
    );
    assert_eq!(letters[0].1.reason, "not JSON");
    assert_eq!(messages_of(&world, "DELIVERIES").await, 0);
}

#[tokio::test]
async fn foreign_message_is_dead_lettered() {
    let world = World::new().await;
    let raw = world.raw().await;
    raw.publish("journeyman.deliveries.github", "junk".into())
        .await
        .unwrap()
        .await
        .unwrap();
    world.deliver("1").await;
    let (mut seen, consuming) = consume_deliveries(&world, |_| DeliveryDisposition::Done);
    assert_eq!(await_soon(seen.recv()).await.unwrap().id, "1");
    let dead = async { while world.queue.dead_letters().list(10).await.unwrap().is_empty() {} };
    await_soon(dead).await;
    world.shutdown.cancel();
    await_soon(consuming).await.unwrap().unwrap();
    assert_eq!(messages_of(&world, "DELIVERIES").await, 0);
}

#[tokio::test]
async fn slots_limit_deliveries_and_running_ones_finish() {
    let world = World::new().await;
    for id in ["1", "2", "3"] {
        world.deliver(id).await;
    }
    let (started, mut starts) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let (deliveries, shutdown, opened) = (world.queue.deliveries(), world.shutdown.clone(), gate.clone());
    let consuming = tokio::spawn(async move {
        deliveries
            .consume(2, shutdown, move |delivery| {
                started.send(delivery.id).unwrap();
                let gate = opened.clone();
                async move {
                    gate.acquire().await.unwrap().forget();
                    DeliveryDisposition::Done
                }
            })
            .await
    });
    await_soon(starts.recv()).await.unwrap();
    await_soon(starts.recv()).await.unwrap();
    assert!(stays_away(starts.recv()).await);
    world.shutdown.cancel();
    gate.add_permits(2);
    await_soon(consuming).await.unwrap().unwrap();
    assert_eq!(messages_of(&world, "DELIVERIES").await, 1);
}

#[tokio::test]
async fn hanging_origin_does_not_delay_others() {
    let world = World::new().await;
    let of = |source: ServiceOrigin, number: usize| WebhookDelivery {
        source,
        ..build_delivery(&number.to_string())
    };
    let deliveries = world.queue.deliveries();
    for number in 0..10 {
        deliveries
            .publish(&of(ServiceOrigin::Jira(None), number))
            .await
            .unwrap();
    }
    let (sender, mut seen) = mpsc::unbounded_channel();
    let answers = Arc::new(Semaphore::new(0));
    let (consumer, shutdown, answering) = (deliveries.clone(), world.shutdown.clone(), answers.clone());
    let consuming = tokio::spawn(async move {
        let handler = move |delivery: WebhookDelivery| {
            let (sender, answering) = (sender.clone(), answering.clone());
            async move {
                sender.send(delivery.source.clone()).unwrap();
                if delivery.source == ServiceOrigin::Jira(None) {
                    answering.acquire().await.unwrap().forget();
                }
                DeliveryDisposition::Done
            }
        };
        consumer.consume(2, shutdown, handler).await
    });
    for _ in 0..2 {
        assert_eq!(await_soon(seen.recv()).await, Some(ServiceOrigin::Jira(None)));
    }
    deliveries
        .publish(&of(ServiceOrigin::GitHub(None), 10))
        .await
        .unwrap();
    assert_eq!(await_soon(seen.recv()).await, Some(ServiceOrigin::GitHub(None)));
    answers.add_permits(10);
    for _ in 2..10 {
        assert_eq!(
            await_soon(seen.recv()).await,
            Some(ServiceOrigin::Jira(None)),
            "none is lost"
        );
    }
    world.shutdown.cancel();
    await_soon(consuming).await.unwrap().unwrap();
    assert_eq!(messages_of(&world, "DELIVERIES").await, 0);
}

/// Settings with the shortest acknowledgement wait, so that five crashes do not take long.
fn build_impatient_settings(world: &World) -> queue::Settings {
    queue::Settings {
        ack_wait_ms: 1_000,
        ..crate::world::build_server_settings(&world.server)
    }
}

#[tokio::test]
async fn panicking_handler_makes_dead_letter_after_five() {
    let world = World::new().await;
    let queue = open_queue(&build_impatient_settings(&world)).await;
    for id in ["poison", "healthy"] {
        queue.deliveries().publish(&build_delivery(id)).await.unwrap();
    }
    let attempts = Arc::new(AtomicUsize::new(0));
    // Each process ends once its handler has panicked, so the count cannot be kept in memory.
    for _ in 0..5 {
        let (stop, counted) = (tokio_util::sync::CancellationToken::new(), attempts.clone());
        let (deliveries, ended) = (queue.deliveries(), stop.clone());
        let process = tokio::spawn(async move {
            let handler = move |delivery: WebhookDelivery| {
                let (stop, counted) = (stop.clone(), counted.clone());
                async move {
                    if delivery.id == "poison" {
                        counted.fetch_add(1, Ordering::SeqCst);
                        stop.cancel();
                        panic!("a crash that the test wants");
                    }
                    DeliveryDisposition::Done
                }
            };
            deliveries.consume(2, ended, handler).await
        });
        await_soon(process).await.unwrap().unwrap();
    }
    let (deliveries, shutdown) = (queue.deliveries(), world.shutdown.clone());
    tokio::spawn(async move {
        let handler = |_: WebhookDelivery| async { panic!("handled again") };
        deliveries.consume(2, shutdown, handler).await
    });
    let buried = async || {
        let letters = queue.dead_letters().list(10).await.unwrap();
        letters.first().map(|(_, letter)| letter.clone())
    };
    let letter = await_soon(async {
        loop {
            if let Some(letter) = buried().await {
                break letter;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(letter.id, "poison");
    assert!(letter.reason.contains("each of 5 attempts"), "{}", letter.reason);
    assert_eq!(attempts.load(Ordering::SeqCst), 5);
    let is_empty = async {
        while messages_of(&world, "DELIVERIES").await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    await_soon(is_empty).await;
}

#[tokio::test]
async fn retries_of_handler_are_no_crashes() {
    let world = World::new().await;
    world.deliver("1").await;
    let (mut seen, _consuming) = consume_deliveries(&world, |count| match count {
        0..12 => DeliveryDisposition::Retry {
            after: Duration::from_millis(20),
        },
        _ => DeliveryDisposition::Done,
    });
    for _ in 0..13 {
        await_soon(seen.recv()).await.unwrap();
    }
    assert!(stays_away(seen.recv()).await);
    assert_eq!(world.queue.dead_letters().list(10).await.unwrap(), []);
}

#[tokio::test]
async fn attempts_at_newer_delivery_are_no_crashes() {
    let world = World::new().await;
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Journeyman-Delivery", r#"{"version":99}"#);
    let raw = world.raw().await;
    let sent = raw.publish_with_headers("journeyman.deliveries.github", headers, "{}".into());
    let sequence = sent.await.unwrap().await.unwrap().sequence;
    let (mut seen, _consuming) = consume_deliveries(&world, |_| DeliveryDisposition::Done);
    let attempts = world.queue.table::<AnyRecord>(KeyValueBucket::Control);
    let key = format!("attempts:DELIVERIES:{sequence}");
    let record = await_soon(async {
        loop {
            if let Some((record, _)) = attempts.get(&key).await.unwrap() {
                break record;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(
        record.0["begun"], 0,
        "a process that can read it must not give it up"
    );
    assert!(stays_away(seen.recv()).await);
    assert_eq!(world.queue.dead_letters().list(10).await.unwrap(), []);
}
