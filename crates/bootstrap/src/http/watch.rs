//! What a connection waits for, and since when.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
    time::Instant,
};

use super::Limits;

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

    pub(super) fn body_complete(&self) {
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
    pub(super) async fn overdue(&self, limits: &Limits) -> &'static str {
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

/// A stream whose reads and blocked writes are seen by the watch.
pub(super) struct Watched {
    stream: TcpStream,
    watch: Arc<Watch>,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, watch: Arc<Watch>) -> Self {
        Self { stream, watch }
    }

    /// What it will read first, left where it is; nothing when the peer has gone.
    pub(super) async fn first_byte(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = self.stream.peek(&mut byte).await?;
        Ok(byte.first().copied().filter(|_| count > 0))
    }
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
