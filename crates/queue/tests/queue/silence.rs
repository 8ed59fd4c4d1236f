//! A server that is gone without a word: its packets are dropped, no connection is closed.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use queue::{Disposition, Queue, Settings};
use servers::NatsServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::mpsc,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::world::{delivery, soon};

/// Promised to operators.
const RECOVERED_WITHIN: Duration = Duration::from_secs(15);

/// A way to a server that can swallow everything in both directions.
struct Way {
    address: SocketAddr,
    silent: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl Way {
    async fn to(server: &NatsServer) -> Self {
        let target = server.url().trim_start_matches("nats://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (silent, connections) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (hears, counts) = (Arc::clone(&silent), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let far = TcpStream::connect(&target).await.unwrap();
                counts.fetch_add(1, Ordering::SeqCst);
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(carry(near_in, far_out, Arc::clone(&hears)));
                tokio::spawn(carry(far_in, near_out, Arc::clone(&hears)));
            }
        });
        Self {
            address,
            silent,
            connections,
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn is_used(&self) -> bool {
        self.connections.load(Ordering::SeqCst) > 0
    }
}

async fn carry(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, silent: Arc<AtomicBool>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if silent.load(Ordering::SeqCst) {
            continue;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    // A dropped half would close the other side, which is what does not happen when packets are lost.
    if silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_left_for_another_one_within_fifteen_seconds() {
    let server = NatsServer::start().await.unwrap();
    let ways = [Way::to(&server).await, Way::to(&server).await];
    let settings = Settings {
        url: ways
            .each_ref()
            .map(|way| format!("nats://{}", way.address))
            .join(","),
        ..Settings::default()
    };
    let queue = Queue::connect(&settings, "test").await.unwrap();
    queue.ensure_topology().await.unwrap();
    let stop = CancellationToken::new();
    let (sender, mut handled) = mpsc::unbounded_channel();
    let (deliveries, shutdown) = (queue.deliveries(), stop.clone());
    tokio::spawn(async move {
        let handler = move |delivery: queue::WebhookDelivery| {
            let _ = sender.send(delivery.id);
            async { Disposition::Done }
        };
        deliveries.consume(4, shutdown, handler).await
    });
    queue.deliveries().publish(&delivery("before")).await.unwrap();
    assert_eq!(soon(handled.recv()).await.as_deref(), Some("before"));

    let used = ways.iter().find(|way| way.is_used()).unwrap();
    used.silent.store(true, Ordering::SeqCst);
    let back = async {
        while queue.deliveries().publish(&delivery("after")).await.is_err() {}
        // The first one may come again: its acknowledgement may be lost in the silence.
        while handled.recv().await.expect("deliveries are handled") != "after" {}
    };
    timeout(RECOVERED_WITHIN, back).await.expect("recovery in time");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_known_at_once_and_a_silent_one_soon() {
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
    timeout(Duration::from_secs(12), known(&silent))
        .await
        .expect("noticed in time");
    server.stop().await;
    soon(known(&closed)).await;
}
