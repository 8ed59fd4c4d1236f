//! One connection: what it waits for, since when, and how it ends.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::{
    body::{Body, HttpBody},
    extract::ConnectInfo,
    http::{HeaderValue, Request, Response, StatusCode, header},
};
use domain::cause::chain;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
    time::Instant,
};
use tower::Service as _;

use super::{Limits, Shared, pace::Paced, table::Seat};

/// Longest head of a request.
const MAX_HEAD: usize = 32 * 1024;

/// What a waiting connection is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// Its peer has begun something and not finished it.
    Unproven,
    /// Its peer has sent a whole request.
    Proven,
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has come yet, or the first head is coming.
    First,
    /// Between two requests.
    Idle,
    /// The head of a later request is coming.
    Head,
    /// The body of a request is coming.
    Body,
    /// A request is worked on or answered.
    Busy,
}

/// What a connection is at, seen from outside.
#[derive(Debug)]
pub(super) struct Watch {
    state: Mutex<State>,
    /// A head has begun, so that an earlier deadline holds.
    head_begun: Notify,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// The peer has not taken what was written since then.
    blocked: Option<Instant>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::First,
                since: Instant::now(),
                blocked: None,
            }),
            head_begun: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the connection is worth to a server whose places are taken: first goes one whose peer owes a request or the
    /// rest of one, then one between two requests, and of the same worth the one that has waited longest. `None` while a
    /// request is worked on.
    pub(super) fn waits(&self) -> Option<(Worth, Instant)> {
        let state = self.lock();
        match state.phase {
            Phase::First | Phase::Head | Phase::Body => Some((Worth::Unproven, state.since)),
            // Load balancers keep such connections, and a request that meets a closing one is lost.
            Phase::Idle => Some((Worth::Proven, state.since)),
            Phase::Busy => None,
        }
    }

    /// A request's head is complete.
    pub(super) fn request(&self, has_body: bool) {
        self.enter(if has_body { Phase::Body } else { Phase::Busy });
    }

    /// The answer is written.
    pub(super) fn answered(&self) {
        self.enter(Phase::Idle);
    }

    fn body_complete(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Body {
            state.phase = Phase::Busy;
        }
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        (state.phase, state.since) = (phase, Instant::now());
    }

    fn read(&self) {
        let begun = {
            let mut state = self.lock();
            let begun = state.phase == Phase::Idle;
            if begun {
                (state.phase, state.since) = (Phase::Head, Instant::now());
            }
            begun
        };
        if begun {
            self.head_begun.notify_one();
        }
    }

    fn written<T>(&self, outcome: &Poll<io::Result<T>>) {
        let mut state = self.lock();
        match outcome {
            Poll::Pending => {
                state.blocked.get_or_insert_with(Instant::now);
            }
            Poll::Ready(_) => state.blocked = None,
        }
    }

    /// The first deadline that has passed, or when to look again.
    fn look(&self, limits: &Limits) -> Result<Instant, &'static str> {
        let now = Instant::now();
        let state = self.lock();
        let waits = match state.phase {
            Phase::First | Phase::Head => Some((state.since + limits.head, "its head did not end")),
            Phase::Idle => Some((state.since + limits.idle, "it was idle")),
            // Bodies have a minimum rate of their own.
            Phase::Body | Phase::Busy => None,
        };
        let blocked = state
            .blocked
            .map(|since| (since + limits.stalled, "its answer was not read"));
        let next = [waits, blocked].into_iter().flatten().min();
        match next {
            Some((due, why)) if due <= now => Err(why),
            // A write may block at any time, which nothing announces.
            Some((due, _)) => Ok(due.min(now + limits.stalled)),
            None => Ok(now + limits.stalled),
        }
    }

    /// Waits until the peer has taken too long with something, and says with what.
    async fn overdue(&self, limits: &Limits) -> &'static str {
        loop {
            match self.look(limits) {
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

/// Serves requests until the connection ends, its peer takes too long, its place is needed, or the server stops.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, seat: Seat, shared: Arc<Shared>) {
    // Small answers leave at once, instead of waiting 40 ms for Nagle's algorithm.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %chain(&error), "TCP_NODELAY was not set");
    }
    let watch = Arc::clone(&seat.watch);
    let io = TokioIo::new(Watched {
        stream,
        watch: Arc::clone(&watch),
    });
    let service = service_fn(|request| answer(request, peer, Arc::clone(&watch), Arc::clone(&shared)));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // The watch knows the phases; this holds where it does not see them, as with pipelined requests.
        .header_read_timeout(shared.limits.idle.max(shared.limits.head))
        .max_buf_size(MAX_HEAD);
    let mut connection = pin!(builder.serve_connection(io, service).with_upgrades());
    let mut stopping = false;
    let ended = loop {
        tokio::select! {
            served = connection.as_mut() => match served {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%peer, error = %chain(&error), "connection broke off");
                    return;
                }
            },
            why = watch.overdue(&shared.limits) => break why,
            () = seat.evicted.cancelled() => break "its place was needed",
            () = shared.cut.cancelled() => break "the server stops",
            () = shared.stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    tracing::debug!(%peer, why = ended, "connection closed");
}

async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    watch: Arc<Watch>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Infallible> {
    let has_body = !request.body().is_end_stream();
    watch.request(has_body);
    let arriving = has_body.then(|| Arriving(Arc::clone(&watch)));
    let busy = Busy(watch);
    let mut request = request.map(|body| Body::new(Paced::new(body, arriving)));
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut response = shared.app.clone().call(request).await?;
    if shared.closing.is_cancelled() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response.map(|body| Body::new(Answer { body, _busy: busy })))
}

/// A body that is still coming, until it is dropped.
pub(super) struct Arriving(Arc<Watch>);

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.body_complete();
    }
}

/// A request in progress, until it is dropped.
struct Busy(Arc<Watch>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.answered();
    }
}

/// The body of an answer, which is part of the request in progress.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose reads and blocked writes are seen by the watch.
struct Watched {
    stream: TcpStream,
    watch: Arc<Watch>,
}

impl AsyncRead for Watched {
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

impl AsyncWrite for Watched {
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

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
