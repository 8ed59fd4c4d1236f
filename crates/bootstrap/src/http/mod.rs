//! The one HTTP server: HTTP/1.1 with bounds on everything that a peer can hold on to.
//!
//! A connection waits for its peer only as long as [`Limits`] allow. When all places are taken, a connection whose
//! peer owes a request goes, the oldest first, so that silent peers never keep a new one out. Request bodies must arrive at a
//! minimum rate; [`Bodies`] bounds the memory that they occupy.

mod bodies;
mod connection;
mod pace;
mod sparse;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::Router;
use domain::cause::chain;
use tokio::{net::TcpListener, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::table::{Full, Seat, Table};
pub use self::{
    bodies::{Bodies, BodyError},
    sparse::SparseLog,
};
use crate::{settings::Error, tls};

/// Pause after a connection that could not be accepted, mostly because no file descriptor was left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a new connection waits for a place while every other one has a request in progress.
const FULL_LIMIT: Duration = Duration::from_secs(5);
/// How long connections may take to end once they are cut.
const CUT_LIMIT: Duration = Duration::from_secs(1);
/// Pause between two log lines about the same kind of refused or closed connection.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// What one listener's peers may hold on to, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections of one IPv4 address or one IPv6 /64 network. All peers behind a load balancer share its address.
    pub per_address: usize,
    /// From the accept of a connection, or from the first byte of a later request, to the end of the request's head.
    pub head: Duration,
    /// Between two requests. Longer than load balancers keep connections (usually 60 s): a request that meets a closing
    /// connection is lost.
    pub idle: Duration,
    /// How long a peer may leave an answer unread.
    pub stalled: Duration,
    /// After shutdown: how long new connections are still taken and answered (`Connection: close`), while load balancers
    /// learn that this process ends.
    pub lame_duck: Duration,
    /// After that: how long requests in progress may take to end.
    pub drain: Duration,
}

impl Default for Limits {
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

/// TLS for a listener.
#[derive(Debug)]
pub struct Secure {
    /// The certificate, and who may connect.
    pub server: tls::Server,
    /// What a connection without TLS is answered: health and metrics, which probes ask by address.
    pub plain: Router,
}

impl Secure {
    /// With the certificate of the settings, for everybody; nothing without settings.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn of(settings: Option<&tls::Settings>, plain: Router) -> Result<Option<Self>, Error> {
        let Some(settings) = settings else { return Ok(None) };
        let server = tls::Server::for_everybody(settings, tls::Protocol::Http1)?;
        Ok(Some(Self { server, plain }))
    }
}

/// What the connections of one listener share.
struct Shared {
    app: Router,
    secure: Option<Secure>,
    limits: Limits,
    /// Connections that ended before they could say anything.
    unopened: SparseLog,
    /// Answers carry `Connection: close` from now on.
    closing: CancellationToken,
    /// Connections end after the request in progress.
    stop: CancellationToken,
    /// Connections end at once.
    cut: CancellationToken,
}

/// Serves until shutdown, then through the lame-duck period, then until requests in progress have ended or the drain
/// time is over. Upgraded connections belong to their handler and are not waited for.
pub async fn serve(listener: TcpListener, app: Router, limits: Limits, shutdown: CancellationToken) {
    serve_over(listener, app, None, limits, shutdown).await;
}

/// The same, over TLS where it is wanted.
pub async fn serve_over(
    listener: TcpListener,
    app: Router,
    secure: Option<Secure>,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let shared = Arc::new(Shared {
        app,
        secure,
        limits,
        unopened: SparseLog::new(LOG_PAUSE),
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
        () = accept(&listener, &shared, &connections) => {}
        () = until => {}
    }
    // Whatever waits in the backlog is refused by the system from here on.
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
        let _ = tokio::time::timeout(CUT_LIMIT, connections.wait()).await;
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, connections: &TaskTracker) {
    let door = Door {
        table: Table::new(shared.limits.connections, shared.limits.per_address),
        log: SparseLog::new(LOG_PAUSE),
    };
    let failed = SparseLog::new(LOG_PAUSE);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(seat) = door.seat(peer.ip()).await {
                    connections.spawn(connection::serve(stream, peer, seat, Arc::clone(shared)));
                }
            }
            Err(error) => {
                if let Some(others) = failed.pass() {
                    tracing::warn!(error = %chain(&error), others, "connections were not accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Where connections come in.
struct Door {
    table: Table,
    log: SparseLog,
}

impl Door {
    /// A place for a new connection. When the listener is full of requests in progress it waits, and with it what is in
    /// the backlog; an address that is full of them is refused, so that others need not wait.
    async fn seat(&self, peer: IpAddr) -> Option<Seat> {
        let give_up = Instant::now() + FULL_LIMIT;
        loop {
            match self.table.admit(peer) {
                Ok(seat) => {
                    if let Some(limit) = seat.displaced {
                        self.say(peer, limit, "the oldest that wait for their peer are closed");
                    }
                    return Some(seat);
                }
                Err(Full::Listener) if Instant::now() < give_up => self.table.change().await,
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

    fn say(&self, peer: IpAddr, limit: Full, what: &'static str) {
        if let Some(others) = self.log.pass() {
            let limit = limit.name();
            tracing::warn!(%peer, limit, others, "too many connections: {what}");
        }
    }
}

impl Full {
    /// For the log.
    fn name(self) -> &'static str {
        match self {
            Self::Address => "of its address",
            Self::Listener => "of the listener",
        }
    }
}
