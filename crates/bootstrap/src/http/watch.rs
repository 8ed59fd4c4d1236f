//! Phase of a connection and its deadlines, tracked from outside the HTTP library.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
    time::Instant,
};
use tonic::transport::server::{Connected as _, TcpConnectInfo};

use super::ListenerLimits;

/// Rank of a waiting connection; the lowest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionRank {
    /// The peer has begun a request or handshake and not finished it.
    Unproven,
    /// The peer has sent a complete request before.
    Proven,
}

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// No complete head has arrived yet.
    First,
    /// The connection is between two requests.
    Idle,
    /// The head of a later request is arriving.
    Head,
    /// The body of a request is arriving.
    Body,
    /// A request is handled or its response is being written.
    Busy,
}

/// Phase of a connection and the time since it began.
#[derive(Debug)]
pub(super) struct ConnectionWatch {
    state: Mutex<WatchState>,
    /// Notified when a head begins, because an earlier deadline applies then.
    head_begun: Notify,
}

#[derive(Debug)]
struct WatchState {
    phase: ConnectionPhase,
    since: Instant,
    /// Time since which the peer has not read what was written.
    blocked: Option<Instant>,
}

impl ConnectionWatch {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(WatchState {
                phase: ConnectionPhase::First,
                since: Instant::now(),
                blocked: None,
            }),
            head_begun: Notify::new(),
        }
    }

    /// Rank and waiting time of the connection for eviction; `None` while a request is handled.
    ///
    /// Connections whose peer owes a request or the rest of one are evicted first, then those between two
    /// requests. Among equal ranks the one that has waited longest is evicted.
    pub(super) fn waits(&self) -> Option<(EvictionRank, Instant)> {
        let state = self.state.lock();
        match state.phase {
            ConnectionPhase::First | ConnectionPhase::Head | ConnectionPhase::Body => {
                Some((EvictionRank::Unproven, state.since))
            }
            // Load balancers keep such connections, and a request that meets a closing one is lost.
            ConnectionPhase::Idle => Some((EvictionRank::Proven, state.since)),
            ConnectionPhase::Busy => None,
        }
    }

    /// Records that the head of a request is complete.
    pub(super) fn request(&self, has_body: bool) {
        self.enter(if has_body {
            ConnectionPhase::Body
        } else {
            ConnectionPhase::Busy
        });
    }

    /// Records that the response is written.
    pub(super) fn answered(&self) {
        self.enter(ConnectionPhase::Idle);
    }

    pub(super) fn body_complete(&self) {
        let mut state = self.state.lock();
        if state.phase == ConnectionPhase::Body {
            state.phase = ConnectionPhase::Busy;
        }
    }

    fn enter(&self, phase: ConnectionPhase) {
        let mut state = self.state.lock();
        (state.phase, state.since) = (phase, Instant::now());
    }

    fn read(&self) {
        let begun = {
            let mut state = self.state.lock();
            let begun = state.phase == ConnectionPhase::Idle;
            if begun {
                (state.phase, state.since) = (ConnectionPhase::Head, Instant::now());
            }
            begun
        };
        if begun {
            // `notify_one` stores a permit, so a head that begins between two checks of the deadlines is not
            // missed.
            self.head_begun.notify_one();
        }
    }

    fn written<T>(&self, outcome: &Poll<io::Result<T>>) {
        let mut state = self.state.lock();
        match outcome {
            Poll::Pending => {
                // The first blocked write counts. A further attempt must not restart the time.
                state.blocked.get_or_insert_with(Instant::now);
            }
            Poll::Ready(_) => state.blocked = None,
        }
    }

    /// Checks the deadlines: the time of the next check, or the reason why one has passed.
    fn check_deadlines(&self, limits: &ListenerLimits) -> Result<Instant, &'static str> {
        let now = Instant::now();
        let state = self.state.lock();
        let waits = match state.phase {
            ConnectionPhase::First | ConnectionPhase::Head => {
                Some((state.since + limits.head, "its head did not end"))
            }
            ConnectionPhase::Idle => Some((state.since + limits.idle, "it was idle")),
            // Bodies have a minimum rate instead, see `pace`.
            ConnectionPhase::Body | ConnectionPhase::Busy => None,
        };
        let blocked = state
            .blocked
            .map(|since| (since + limits.stalled, "its answer was not read"));
        let next = [waits, blocked].into_iter().flatten().min();
        match next {
            Some((due, why)) if due <= now => Err(why),
            // A write may block at any time, which causes no notification.
            Some((due, _)) => Ok(due.min(now + limits.stalled)),
            None => Ok(now + limits.stalled),
        }
    }

    /// Waits until the peer exceeds a time limit, and returns the reason.
    pub(super) async fn overdue(&self, limits: &ListenerLimits) -> &'static str {
        loop {
            match self.check_deadlines(limits) {
                Err(why) => return why,
                Ok(next) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(next) => {}
                        () = self.head_begun.notified() => {}
                    }
                }
            }
        }
    }
}

/// Stream that reports its reads and blocked writes to the watch.
pub(super) struct WatchedStream {
    stream: TcpStream,
    watch: Arc<ConnectionWatch>,
}

impl WatchedStream {
    pub(super) fn new(stream: TcpStream, watch: Arc<ConnectionWatch>) -> Self {
        Self { stream, watch }
    }

    /// Addresses of both ends, for the handlers of gRPC.
    pub(super) fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }

    /// First byte of the stream without consuming it; `None` when the peer has closed the connection.
    pub(super) async fn first_byte(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = self.stream.peek(&mut byte).await?;
        Ok(byte.first().copied().filter(|_| count > 0))
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if into.filled().len() > before {
            self.watch.read();
        }
        read
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch.written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watch.written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Not watched: flushing a TCP stream of tokio does nothing and never blocks.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
