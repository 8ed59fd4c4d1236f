//! The accept loop of all listeners: connections within the limits, and throttled log lines about the others.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::{net::TcpListener, time::Instant};

use super::{
    ListenerLimits,
    table::{ConnectionPermit, ConnectionTable, ReachedLimit},
    watch::WatchedStream,
};

// Pause after a failed `accept`: most failures are a lack of file descriptors, which a retry at once does not
// end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time that a new connection waits for a place while every other one has a request in progress.
const FULL_LIMIT: Duration = Duration::from_secs(5);
/// Minimum interval between two log lines about the same kind of refused or closed connection.
pub(super) const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Connection that has a place. No byte of it has been read.
pub(super) struct AcceptedConnection {
    pub(super) stream: WatchedStream,
    pub(super) peer: SocketAddr,
    pub(super) permit: ConnectionPermit,
}

/// Entrance of a listener: its socket, its table of connections and its throttled logs.
pub(super) struct ConnectionAcceptor {
    listener: TcpListener,
    table: ConnectionTable,
    full: ThrottledLog,
    failed: ThrottledLog,
}

impl ConnectionAcceptor {
    pub(super) fn new(listener: TcpListener, limits: &ListenerLimits) -> Self {
        Self {
            listener,
            table: ConnectionTable::new(limits.connections, limits.per_address),
            full: ThrottledLog::new(LOG_PAUSE),
            failed: ThrottledLog::new(LOG_PAUSE),
        }
    }

    /// Waits for the next connection that gets a place. Connections without one are closed.
    pub(super) async fn accept(&self) -> AcceptedConnection {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // The limits apply before the TLS handshake, so that a refused peer causes none.
                    let Some(permit) = self.admit(peer.ip()).await else {
                        continue;
                    };
                    // Small messages are sent at once, instead of waiting 40 ms for Nagle's algorithm.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(error = %format_error_chain(&error), "TCP_NODELAY was not set");
                    }
                    let stream = WatchedStream::new(stream, Arc::clone(&permit.watch));
                    return AcceptedConnection { stream, peer, permit };
                }
                Err(error) => {
                    if let Some(others) = self.failed.pass() {
                        tracing::warn!(error = %format_error_chain(&error), others, "connections were not accepted");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Finds a place for a new connection.
    ///
    /// If all connections of the listener have a request in progress, it waits, and the backlog with it. If
    /// those of an address have, the connection is refused, so that other addresses need not wait.
    async fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let give_up = Instant::now() + FULL_LIMIT;
        loop {
            match self.table.admit(peer) {
                Ok(permit) => {
                    if let Some(limit) = permit.displaced {
                        self.warn(peer, limit, "the oldest that wait for their peer are closed");
                    }
                    return Some(permit);
                }
                Err(ReachedLimit::Listener) if Instant::now() < give_up => self.table.change().await,
                Err(limit) => {
                    self.warn(
                        peer,
                        limit,
                        "all have a request in progress, and new ones are refused",
                    );
                    return None;
                }
            }
        }
    }

    fn warn(&self, peer: IpAddr, limit: ReachedLimit, what: &'static str) {
        if let Some(others) = self.full.pass() {
            let limit = limit.name();
            tracing::warn!(%peer, limit, others, "too many connections: {what}");
        }
    }
}

/// Limiter that lets one log line through per interval and counts the others.
#[derive(Debug)]
pub struct ThrottledLog {
    every: Duration,
    state: Mutex<ThrottleState>,
}

#[derive(Debug, Default)]
struct ThrottleState {
    last: Option<Instant>,
    suppressed: u64,
}

impl ThrottledLog {
    /// Creates a limiter with one line per interval.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            state: Mutex::default(),
        }
    }

    /// Returns `Some` when a line is due, with the number of lines that were suppressed before it.
    pub fn pass(&self) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.last.is_some_and(|last| now < last + self.every) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_per_interval_counts_suppressed_ones() {
        let log = ThrottledLog::new(Duration::from_secs(10));
        assert_eq!((log.pass(), log.pass(), log.pass()), (Some(0), None, None));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!((log.pass(), log.pass()), (Some(2), None));
    }
}
