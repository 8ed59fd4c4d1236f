//! The gRPC server, with limits for one caller and for all callers.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use bootstrap::{
    health::ServiceHealth,
    http::{ListenerLimits, accept_grpc},
    tls,
};
use proto::executor::executor_service_server::ExecutorServiceServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic_health::server::HealthReporter;

use super::{admission::GrantInterceptor, grpc::ExecutorGrpc, registry::WorkspaceRegistry, spans::SpanDesk};

/// Limits of open connections: in total, and from one address.
const MAX_CONNECTIONS: usize = 512;
const MAX_CONNECTIONS_PER_ADDRESS: usize = 64;
/// Time limit for running calls after the executor was asked to stop.
const DRAIN_TIME: Duration = Duration::from_secs(15);
/// Time limit for open connections afterwards.
const LINGER: Duration = Duration::from_secs(3);

/// Time limit for planners to fetch the last spans.
const SPAN_LINGER: Duration = Duration::from_secs(3);

// A planner uses a stream for each call and one for each run that it watches.
const MAX_STREAMS: u32 = 512;
/// Limit of calls of one connection that wait for their first response.
const MAX_WAITING_CALLS: usize = 256;
// Limit in bytes of a request's headers. The grant takes most of it.
const MAX_HEADERS: u32 = 16 * 1024;
// Limit of a message in bytes. Larger content is streamed in chunks.
const MAX_MESSAGE: usize = 4 << 20;
// Connections end after this time, so that callers reconnect to current addresses. Running calls may finish.
const MAX_AGE: Duration = Duration::from_secs(3600);
// The longest call is a check, with 2,100 s (`checks::MAX_CALL`). It may wait as long for an earlier check of its
// workspace; the rest is a margin.
const MAX_AGE_GRACE: Duration = Duration::from_secs(4320);

/// Service whose health is reported over gRPC.
type HealthContract = ExecutorServiceServer<ExecutorGrpc>;

/// Reports to probes and callers whether this executor accepts work: over gRPC, and next to the metrics.
#[derive(Clone)]
pub(crate) struct ReadinessReporter {
    grpc: HealthReporter,
    http: ServiceHealth,
}

impl ReadinessReporter {
    pub(crate) async fn set(&self, is_ready: bool) {
        self.http.set_ready(is_ready);
        if is_ready {
            self.grpc.set_serving::<HealthContract>().await;
        } else {
            self.grpc.set_not_serving::<HealthContract>().await;
        }
    }
}

/// Listener of the executor with its TLS configuration and its health.
pub(crate) struct ServerListener {
    pub(crate) listener: TcpListener,
    /// TLS configuration that admits only planners; `None` without certificates.
    pub(crate) tls: Option<tls::TlsServer>,
    pub(crate) health: ServiceHealth,
}

/// Serves until `shutdown`. `watch` receives the readiness and runs for the same time. The executor is not
/// ready until `watch` sets it.
pub(crate) async fn serve_grpc<F: Future<Output = ()>>(
    registry: Arc<WorkspaceRegistry>,
    verifier: grant::GrantVerifier,
    endpoint: ServerListener,
    shutdown: CancellationToken,
    watch: impl FnOnce(ReadinessReporter) -> F,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let readiness = ReadinessReporter {
        grpc: health,
        http: endpoint.health,
    };
    readiness.set(false).await;
    let spans = Arc::new(SpanDesk::of_process());
    let service = ExecutorServiceServer::new(ExecutorGrpc {
        registry: Arc::clone(&registry),
        spans: Arc::clone(&spans),
    })
    .max_decoding_message_size(MAX_MESSAGE)
    .max_encoding_message_size(MAX_MESSAGE);
    let limits = ListenerLimits {
        connections: MAX_CONNECTIONS,
        per_address: MAX_CONNECTIONS_PER_ADDRESS,
        ..ListenerLimits::default()
    };
    let drained = CancellationToken::new();
    let server = tonic::transport::Server::builder()
        // A peer that vanished without closing would otherwise hold its connection and calls.
        .http2_keepalive_interval(Some(Duration::from_secs(15)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_header_list_size(MAX_HEADERS)
        .max_concurrent_streams(MAX_STREAMS)
        .concurrency_limit_per_connection(MAX_WAITING_CALLS)
        .max_connection_age(MAX_AGE)
        .max_connection_age_grace(MAX_AGE_GRACE)
        .add_service(health_service)
        .add_service(InterceptedService::new(service, GrantInterceptor::new(verifier)))
        .serve_with_incoming_shutdown(
            accept_grpc(endpoint.listener, endpoint.tls, limits),
            drained.clone().cancelled_owned(),
        );
    // Not the drain of `bootstrap::http`: planners need their connections for the state and the spans until the last
    // call has ended.
    let stop = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = watch(readiness.clone()) => shutdown.cancelled().await,
        }
        readiness.set(false).await;
        // Before the wait: the status streams report the drain, and planners choose other executors.
        registry.capacity.drain();
        let deadline = tokio::time::Instant::now() + DRAIN_TIME;
        while registry.is_busy() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        registry.stop().await;
        // Planners fetch the spans of their last calls now, over existing connections.
        spans.wait_until_taken(SPAN_LINGER).await;
        drained.cancel();
        // Streams that do not end must not delay the stop any longer.
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        served = server => served.context("serving gRPC"),
        () = stop => Ok(()),
    }
}
