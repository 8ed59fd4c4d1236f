//! HTTP/1.1 server of all listeners, with limits on everything that a peer can occupy.
//!
//! A connection waits for its peer only as long as [`ListenerLimits`] allow. When all places are taken, the server
//! closes the oldest connection whose peer owes a request, so that silent peers never keep a new one out.
//! Request bodies must arrive at a minimum rate, and [`RequestBodies`] limits the memory that they occupy.

mod bodies;
mod connection;
mod pace;
mod table;
#[cfg(test)]
mod tests;
mod throttled_log;
mod watch;

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::Router;
use domain::cause::format_error_chain;
use tokio::{net::TcpListener, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::table::{ConnectionPermit, ConnectionTable, ReachedLimit};
pub use self::{
    bodies::{BodyError, RequestBodies},
    throttled_log::ThrottledLog,
};
use crate::{settings::Error, tls};

// Pause after a failed `accept`: most failures are a lack of file descriptors, which a retry at once does not
// end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time that a new connection waits for a place while every other one has a request in progress.
const FULL_LIMIT: Duration = Duration::from_secs(5);
/// Time that connections have to end after they were interrupted.
const CUT_LIMIT: Duration = Duration::from_secs(1);
/// Minimum interval between two log lines about the same kind of refused or closed connection.
const LOG_PAUSE: Duration = Duration::from_secs(10);

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
    let connections = TaskTracker::new();
    let until = async {
        shutdown.cancelled().await;
        tokio::time::sleep(limits.lame_duck).await;
    };
    tokio::select! {
        () = accept_connections(&listener, &shared, &connections) => {}
        () = until => {}
    }
    // The system refuses connections in the backlog from now on.
    drop(listener);
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

async fn accept_connections(listener: &TcpListener, shared: &Arc<ListenerState>, connections: &TaskTracker) {
    let door = ConnectionAdmission {
        table: ConnectionTable::new(shared.limits.connections, shared.limits.per_address),
        log: ThrottledLog::new(LOG_PAUSE),
    };
    let failed = ThrottledLog::new(LOG_PAUSE);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // The limits apply before the TLS handshake, so that a refused peer causes none.
                if let Some(seat) = door.seat(peer.ip()).await {
                    connections.spawn(connection::run_connection(stream, peer, seat, Arc::clone(shared)));
                }
            }
            Err(error) => {
                if let Some(others) = failed.pass() {
                    tracing::warn!(error = %format_error_chain(&error), others, "connections were not accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Entrance of a listener: table of connections and throttled log.
struct ConnectionAdmission {
    table: ConnectionTable,
    log: ThrottledLog,
}

impl ConnectionAdmission {
    /// Finds a place for a new connection.
    ///
    /// If all connections of the listener have a request in progress, it waits, and the backlog with it. If
    /// those of an address have, the connection is refused, so that other addresses need not wait.
    async fn seat(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let give_up = Instant::now() + FULL_LIMIT;
        loop {
            match self.table.admit(peer) {
                Ok(seat) => {
                    if let Some(limit) = seat.displaced {
                        self.say(peer, limit, "the oldest that wait for their peer are closed");
                    }
                    return Some(seat);
                }
                Err(ReachedLimit::Listener) if Instant::now() < give_up => self.table.change().await,
                Err(limit) => {
                    self.say(
                        peer,
                        limit,
                        "all have a request in progress, and new ones are refused",
                    );
                    return None;
                }
            }
        }
    }

    fn say(&self, peer: IpAddr, limit: ReachedLimit, what: &'static str) {
        if let Some(others) = self.log.pass() {
            let limit = limit.name();
            tracing::warn!(%peer, limit, others, "too many connections: {what}");
        }
    }
}

impl ReachedLimit {
    /// Name of the limit for the log.
    fn name(self) -> &'static str {
        match self {
            Self::Address => "of its address",
            Self::Listener => "of the listener",
        }
    }
}
