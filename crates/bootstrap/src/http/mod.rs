//! HTTP/1.1 server of all listeners, with limits on everything that a peer can occupy.
//!
//! A connection waits for its peer only as long as [`ListenerLimits`] allow. When all places are taken, the server
//! closes the oldest connection whose peer owes a request, so that silent peers never keep a new one out.
//! Request bodies must arrive at a minimum rate, and [`RequestBodies`] limits the memory that they occupy.

mod acceptor;
mod bodies;
mod connection;
mod grpc;
mod pace;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::{sync::Arc, time::Duration};

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::acceptor::{ConnectionAcceptor, LOG_PAUSE};
pub use self::{
    acceptor::ThrottledLog,
    bodies::{BodyError, RequestBodies},
    grpc::{GrpcConnection, accept_grpc},
};
use crate::{settings::Error, tls};

/// Time that connections have to end after they were interrupted.
const CUT_LIMIT: Duration = Duration::from_secs(1);

/// Limits of one listener: connections, and the time that a peer may occupy one.
#[derive(Clone, Copy, Debug)]
pub struct ListenerLimits {
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of connections of one IPv4 address or one IPv6 /64 network. All peers behind a load
    /// balancer share its address.
    pub per_address: usize,
    /// Limit from the accept of a connection, or from the first byte of a later request, to the end of the
    /// request's head.
    pub head: Duration,
    /// Limit between two requests. Must exceed the keep-alive of load balancers (usually 60 s): a request
    /// that meets a closing connection is lost.
    pub idle: Duration,
    /// Time that a peer may leave a response unread.
    pub stalled: Duration,
    /// After shutdown: time for which new connections are still accepted and answered with the header
    /// `Connection: close`, until load balancers notice the shutdown.
    pub lame_duck: Duration,
    /// After the lame-duck period: time that requests in progress have to end.
    pub drain: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            per_address: 128,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            stalled: Duration::from_secs(60),
            lame_duck: Duration::ZERO,
            drain: Duration::from_secs(15),
        }
    }
}

/// TLS of a listener, with the routes that are served without it.
#[derive(Debug)]
pub struct ListenerTls {
    /// Certificate of the listener and verification of its clients.
    pub server: tls::TlsServer,
    /// Routes for connections without TLS: health and metrics, which probes request by address.
    pub plain: Router,
}

impl ListenerTls {
    /// TLS with the certificate of the settings, without client certificates; `None` without settings.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn of(settings: Option<&tls::Settings>, plain: Router) -> Result<Option<Self>, Error> {
        let Some(settings) = settings else { return Ok(None) };
        let server = tls::TlsServer::for_everybody(settings, tls::TlsProtocol::Http1)?;
        Ok(Some(Self { server, plain }))
    }
}

/// State that the connections of one listener share.
struct ListenerState {
    app: Router,
    secure: Option<ListenerTls>,
    limits: ListenerLimits,
    /// Throttle for log lines about failed TLS handshakes.
    unopened: ThrottledLog,
    /// Responses carry `Connection: close` from now on.
    closing: CancellationToken,
    /// Connections end after the request in progress.
    stop: CancellationToken,
    /// Connections end at once.
    cut: CancellationToken,
}

/// Serves until shutdown, then through the lame-duck period, then until requests in progress have ended or
/// the drain time is over.
///
/// Upgraded connections belong to their handler; the shutdown does not wait for them.
pub async fn serve_http(
    listener: TcpListener,
    app: Router,
    limits: ListenerLimits,
    shutdown: CancellationToken,
) {
    serve_https(listener, app, None, limits, shutdown).await;
}

/// Serves like [`serve_http`], with TLS if `secure` is set.
pub async fn serve_https(
    listener: TcpListener,
    app: Router,
    secure: Option<ListenerTls>,
    limits: ListenerLimits,
    shutdown: CancellationToken,
) {
    let shared = Arc::new(ListenerState {
        app,
        secure,
        limits,
        unopened: ThrottledLog::new(LOG_PAUSE),
        closing: shutdown.clone(),
        stop: CancellationToken::new(),
        cut: CancellationToken::new(),
    });
    let acceptor = ConnectionAcceptor::new(listener, &limits);
    let connections = TaskTracker::new();
    let until = async {
        shutdown.cancelled().await;
        tokio::time::sleep(limits.lame_duck).await;
    };
    tokio::select! {
        () = accept_connections(&acceptor, &shared, &connections) => {}
        () = until => {}
    }
    // The system refuses connections in the backlog from now on.
    drop(acceptor);
    shared.stop.cancel();
    connections.close();
    if tokio::time::timeout(limits.drain, connections.wait())
        .await
        .is_err()
    {
        tracing::info!(
            connections = connections.len(),
            "requests in progress are cut off"
        );
        shared.cut.cancel();
        // A connection that misses this limit ends with the runtime.
        let _ = tokio::time::timeout(CUT_LIMIT, connections.wait()).await;
    }
}

async fn accept_connections(
    acceptor: &ConnectionAcceptor,
    shared: &Arc<ListenerState>,
    connections: &TaskTracker,
) {
    loop {
        let accepted = acceptor.accept().await;
        connections.spawn(connection::run_connection(accepted, Arc::clone(shared)));
    }
}
