//! The gRPC server: who is served, and how much one caller and all together may ask for.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use bootstrap::{health::Health, tls};
use proto::executor::executor_service_server::ExecutorServiceServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic_health::server::HealthReporter;

use crate::{
    admission::Admission, incoming::incoming, registry::Registry, service::Service, spans::SpanDesk,
};

/// How long running calls may go on once the executor has been asked to stop.
const DRAIN_TIME: Duration = Duration::from_secs(15);
/// How long open connections may take after that.
const LINGER: Duration = Duration::from_secs(3);

/// Time for planners to ask for the last spans.
const SPAN_LINGER: Duration = Duration::from_secs(3);

/// Streams of one connection: a planner has one for each call and one for each run that it watches.
const MAX_STREAMS: u32 = 512;
/// Calls of one connection that wait for their first answer.
const MAX_WAITING_CALLS: usize = 256;
/// Of one request, in bytes; a grant takes most of it.
const MAX_HEADERS: u32 = 16 * 1024;
/// Larger content comes in parts.
const MAX_MESSAGE: usize = 4 << 20;
/// A connection ends after this time, so that addresses that no longer count are let go; a call that runs may finish.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// As long as the longest check.
const MAX_AGE_GRACE: Duration = Duration::from_secs(2160);

/// The name under which health is told.
type Contract = ExecutorServiceServer<Service>;

/// Tells probes and callers whether this executor takes work, over gRPC and beside its metrics.
#[derive(Clone)]
pub(crate) struct Readiness {
    grpc: HealthReporter,
    http: Health,
}

impl Readiness {
    pub(crate) async fn set(&self, is_ready: bool) {
        self.http.set_ready(is_ready);
        if is_ready {
            self.grpc.set_serving::<Contract>().await;
        } else {
            self.grpc.set_not_serving::<Contract>().await;
        }
    }
}

/// Where the executor is found, and what it tells there.
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    /// Only planners come in, when there are certificates.
    pub(crate) tls: Option<tls::Server>,
    pub(crate) health: Health,
}

/// Serves until `shutdown`. `watch` is given the readiness and runs as long; until it says otherwise the executor is
/// not ready.
pub(crate) async fn serve<F: Future<Output = ()>>(
    registry: Arc<Registry>,
    verifier: grant::Verifier,
    door: Door,
    shutdown: CancellationToken,
    watch: impl FnOnce(Readiness) -> F,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let readiness = Readiness {
        grpc: health,
        http: door.health,
    };
    readiness.set(false).await;
    let spans = Arc::new(SpanDesk::of_process());
    let service = ExecutorServiceServer::new(Service {
        registry: Arc::clone(&registry),
        spans: Arc::clone(&spans),
    })
    .max_decoding_message_size(MAX_MESSAGE)
    .max_encoding_message_size(MAX_MESSAGE);
    let drained = CancellationToken::new();
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(15)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_header_list_size(MAX_HEADERS)
        .max_concurrent_streams(MAX_STREAMS)
        .concurrency_limit_per_connection(MAX_WAITING_CALLS)
        .max_connection_age(MAX_AGE)
        .max_connection_age_grace(MAX_AGE_GRACE)
        .add_service(health_service)
        .add_service(InterceptedService::new(service, Admission::new(verifier)))
        .serve_with_incoming_shutdown(
            incoming(door.listener, door.tls),
            drained.clone().cancelled_owned(),
        );
    let stop = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = watch(readiness.clone()) => shutdown.cancelled().await,
        }
        readiness.set(false).await;
        registry.drain();
        let deadline = tokio::time::Instant::now() + DRAIN_TIME;
        while registry.is_busy() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        registry.stop().await;
        // The spans of the last calls: planners ask for them about now, and over no connection that is new.
        spans.wait_until_taken(SPAN_LINGER).await;
        drained.cancel();
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        served = server => served.context("serving gRPC"),
        () = stop => Ok(()),
    }
}
