//! Servers that fall silent: their packets are dropped and no connection is closed.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use queue::{DeliveryDisposition, Queue, Settings};
use servers::NatsServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::world::{await_soon, bound_running_time, build_delivery, open_queue};

/// Limit that docs/reference/promises.md gives to operators.
const RECOVERED_WITHIN: Duration = Duration::from_secs(15);

/// Relay to a server that can drop all packets in both directions.
struct Way {
    address: SocketAddr,
    silent: Arc<AtomicBool>,
    carried: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl Way {
    async fn to(server: &NatsServer) -> Self {
        let target = server.url().trim_start_matches("nats://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (silent, carried) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (hears, counts) = (Arc::clone(&silent), Arc::clone(&carried));
        let task = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let far = TcpStream::connect(&target).await.unwrap();
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(relay_bytes(
                    near_in,
                    far_out,
                    Arc::clone(&hears),
                    Arc::clone(&counts),
                ));
                tokio::spawn(relay_bytes(
                    far_in,
                    near_out,
                    Arc::clone(&hears),
                    Arc::clone(&counts),
                ));
            }
        });
        Self {
            address,
            silent,
            carried,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Relay of the client's connection. The others carried the greeting of a server at most.
    fn used(ways: &[Self]) -> &Self {
        let carried = |way: &&Self| way.carried.load(Ordering::SeqCst);
        ways.iter().max_by_key(carried).unwrap()
    }
}

async fn relay_bytes(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    silent: Arc<AtomicBool>,
    carried: Arc<AtomicUsize>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if silent.load(Ordering::SeqCst) {
            continue;
        }
        carried.fetch_add(read, Ordering::SeqCst);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    // A dropped half would close the other side, which does not happen when packets are lost.
    if silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_server_is_replaced_within_fifteen_seconds() {
    let server = NatsServer::start().await.unwrap();
    let ways = [Way::to(&server).await, Way::to(&server).await];
    let settings = Settings {
        url: ways
            .each_ref()
            .map(|way| format!("nats://{}", way.address))
            .join(","),
        ..Settings::default()
    };
    let queue = open_queue(&settings).await;
    let stop = CancellationToken::new();
    let (sender, mut handled) = mpsc::unbounded_channel();
    let (deliveries, shutdown) = (queue.deliveries(), stop.clone());
    tokio::spawn(async move {
        let handler = move |delivery: queue::WebhookDelivery| {
            let _ = sender.send(delivery.id);
            async { DeliveryDisposition::Done }
        };
        deliveries.consume(4, shutdown, handler).await
    });
    queue
        .deliveries()
        .publish(&build_delivery("before"))
        .await
        .unwrap();
    assert_eq!(await_soon(handled.recv()).await.as_deref(), Some("before"));

    Way::used(&ways).silent.store(true, Ordering::SeqCst);
    let back = async {
        while queue
            .deliveries()
            .publish(&build_delivery("after"))
            .await
            .is_err()
        {}
        // The first delivery may be repeated if its acknowledgement was lost in the silence.
        while handled.recv().await.expect("deliveries are handled") != "after" {}
    };
    bound_running_time(RECOVERED_WITHIN, back)
        .await
        .expect("recovery in time");
    stop.cancel();
}

/// Time within which the client notices a silent server. The rest of the limit is for finding one that
/// answers.
const NOTICED_WITHIN: Duration = Duration::from_secs(9);
/// Limit of finding the one address that answers, on a loaded machine.
const FOUND_WITHIN: Duration = Duration::from_secs(3);

/// With nineteen of twenty addresses lost, trying one after another would take nineteen seconds on average.
#[tokio::test(flavor = "multi_thread")]
async fn lost_addresses_delay_no_connection() {
    let server = NatsServer::start().await.unwrap();
    let mut ways = Vec::new();
    for _ in 0..20 {
        ways.push(Way::to(&server).await);
    }
    let urls: Vec<String> = ways.iter().map(|way| format!("nats://{}", way.address)).collect();
    let settings = Settings {
        url: urls.join(","),
        ..Settings::default()
    };
    let queue = open_queue(&settings).await;
    let used = Way::used(&ways).address;
    let spared = ways.iter().find(|way| way.address != used).unwrap();
    for way in &ways {
        way.silent.store(way.address != spared.address, Ordering::SeqCst);
    }

    let reconnected = async {
        // A reconnect can be over between two polls of the state. A publish succeeds through the spared
        // address only.
        while queue
            .deliveries()
            .publish(&build_delivery("after"))
            .await
            .is_err()
        {}
    };
    bound_running_time(NOTICED_WITHIN + FOUND_WITHIN, reconnected)
        .await
        .expect("reconnected in time");
    let first = Queue::connect(&settings, "test");
    bound_running_time(FOUND_WITHIN, first)
        .await
        .expect("connected in time")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connection_is_noticed_at_once() {
    let mut server = NatsServer::start().await.unwrap();
    let way = Way::to(&server).await;
    let through = Settings {
        url: format!("nats://{}", way.address),
        ..Settings::default()
    };
    let silent = Queue::connect(&through, "test").await.unwrap();
    let direct = Settings {
        url: server.url(),
        ..Settings::default()
    };
    let closed = Queue::connect(&direct, "test").await.unwrap();
    assert!(silent.is_connected() && closed.is_connected());
    way.silent.store(true, Ordering::SeqCst);
    let known = async |queue: &Queue| {
        while queue.is_connected() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    bound_running_time(NOTICED_WITHIN + FOUND_WITHIN, known(&silent))
        .await
        .expect("noticed in time");
    server.stop().await;
    await_soon(known(&closed)).await;
}
