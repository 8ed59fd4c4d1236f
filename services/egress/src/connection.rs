//! HTTP/1 on one connection, inside and outside of a session, with a clock of its last activity.

use std::{
    convert::Infallible,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, http::Request, http::Response};
use domain::cause::format_error_chain;
use hyper::{body::Incoming, rt, server::conn::http1, service::Service};
use hyper_util::rt::TokioTimer;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

// Longest head of a request, in bytes. hyper answers a longer one with 431.
const MAX_HEAD: usize = 32 * 1024;

/// Serves requests until the connection ends. On shutdown it ends after the request in progress.
pub(crate) async fn serve_http<I, S>(io: I, service: S, header_limit: Duration, shutdown: &CancellationToken)
where
    I: rt::Read + rt::Write + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    // Not the server of `bootstrap::http`: nothing is accepted here. The connection is one that became a session, whose
    // limits are those of its run, and the listener does not count it any more.
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_limit)
        .max_buf_size(MAX_HEAD);
    let mut connection = pin!(builder.serve_connection(io, service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = %format_error_chain(&error), "connection broke off");
    }
}

/// Clock of the last byte that a connection read or wrote, shared by its clones.
#[derive(Clone)]
pub(crate) struct ConnectionActivity {
    start: Instant,
    last_ms: Arc<AtomicU64>,
}

impl ConnectionActivity {
    /// Starts the clock; creation counts as activity.
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            last_ms: Arc::default(),
        }
    }

    /// Records activity now.
    // Milliseconds in one atomic instead of a lock: every chunk of every tunnel passes here.
    pub(crate) fn note(&self) {
        let ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    /// Waits until nothing has been read or written for `limit`.
    pub(crate) async fn quiet(&self, limit: Duration) {
        // A chunk may arrive during the sleep, so the deadline is computed again after it.
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let due = self.start + last + limit;
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// Stream that records its reads and writes in an [`ConnectionActivity`].
pub(crate) struct TimedStream<S> {
    stream: S,
    activity: ConnectionActivity,
}

impl<S> TimedStream<S> {
    pub(crate) const fn new(stream: S, activity: ConnectionActivity) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if read.is_ready() {
            self.activity.note();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if written.is_ready() {
            self.activity.note();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connection_becomes_quiet_after_last_byte() {
        let activity = ConnectionActivity::new();
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = TimedStream::new(near, activity.clone());
        let start = Instant::now();
        let limit = Duration::from_secs(60);
        let talk = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            far.write_all(b"in").await.unwrap();
            near.read_exact(&mut [0; 2]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(50)).await;
            near.write_all(b"out").await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! { () = talk => {}, () = activity.quiet(limit) => {} }
        assert_eq!(start.elapsed().as_secs(), 160);
    }
}
