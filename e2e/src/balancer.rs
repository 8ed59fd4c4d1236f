//! Single address for all replicas of a service, like a Kubernetes Service: connections go to ready replicas
//! in turn.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Interval between readiness probes of each replica.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Time limit of a probe, and of a connection to a replica. A replica that drains is found after two probes at the latest.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

struct BalancedReplica {
    address: String,
    ready: AtomicBool,
}

/// Listener of the balancer. Dropping it closes the address and all connections.
pub(crate) struct ReplicaBalancer {
    address: SocketAddr,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl ReplicaBalancer {
    /// Listens on a free loopback port and probes `/readyz` of each replica.
    ///
    /// # Errors
    /// When no port can be bound.
    pub(crate) async fn start(replicas: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let replicas = replicas.map(|address| BalancedReplica {
            address,
            ready: AtomicBool::new(false),
        });
        let replicas: Arc<[BalancedReplica]> = replicas.collect();
        let probing = tokio::spawn(probe_all(Arc::clone(&replicas)));
        let serving = tokio::spawn(accept_connections(listener, replicas));
        Ok(Self {
            address,
            _tasks: [probing, serving].map(AbortOnDropHandle::new),
        })
    }

    /// URL of the form `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn probe_all(replicas: Arc<[BalancedReplica]>) {
    let client = reqwest::Client::builder().no_proxy().timeout(PROBE_LIMIT);
    let Ok(client) = client.build() else { return };
    loop {
        join_all(replicas.iter().map(async |replica| {
            let asked = client.get(format!("http://{}/readyz", replica.address)).send();
            let is_ready = asked.await.is_ok_and(|answer| answer.status().is_success());
            replica.ready.store(is_ready, Ordering::Release);
        }))
        .await;
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
}

async fn accept_connections(listener: TcpListener, replicas: Arc<[BalancedReplica]>) {
    let turn = Arc::new(AtomicUsize::new(0));
    let mut open = tokio::task::JoinSet::new();
    loop {
        if let Ok((mut caller, _)) = listener.accept().await {
            let (replicas, turn) = (Arc::clone(&replicas), Arc::clone(&turn));
            open.spawn(async move {
                // Without a replica the caller's connection is closed, as by a Service without endpoints.
                if let Some(mut replica) = connect_replica(&replicas, &turn).await {
                    let _ = tokio::io::copy_bidirectional(&mut caller, &mut replica).await;
                }
            });
        }
        while open.try_join_next().is_some() {}
    }
}

/// Connects to the next ready replica. If no replica is ready, it tries all of them, as kube-proxy does with
/// terminating endpoints: a replica that stops may be noticed before its successor.
async fn connect_replica(replicas: &[BalancedReplica], turn: &AtomicUsize) -> Option<TcpStream> {
    // Only the distribution matters, so relaxed order suffices.
    let first = turn.fetch_add(1, Ordering::Relaxed);
    let in_turn = || (0..replicas.len()).map(|step| &replicas[(first + step) % replicas.len()]);
    let is_ready = |replica: &&BalancedReplica| replica.ready.load(Ordering::Acquire);
    for replica in in_turn().filter(is_ready).chain(in_turn()) {
        let connected = tokio::time::timeout(PROBE_LIMIT, TcpStream::connect(&replica.address)).await;
        if let Ok(Ok(stream)) = connected {
            let _ = stream.set_nodelay(true);
            return Some(stream);
        }
    }
    None
}
