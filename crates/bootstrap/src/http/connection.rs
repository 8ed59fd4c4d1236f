//! Handling of one connection: TLS detection, HTTP/1.1, time limits and shutdown.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::ConnectInfo,
    http::{HeaderValue, Request, Response, StatusCode, header},
};
use domain::cause::format_error_chain;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;
use tower::Service as _;

use super::{
    ListenerState, ListenerTls,
    acceptor::AcceptedConnection,
    pace::MinRateBody,
    table::ConnectionPermit,
    watch::{ConnectionWatch, WatchedStream},
};

// Maximum size of a request's head in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// Serves requests until the connection ends, its peer exceeds a time limit, its place is needed, or the
/// server stops.
pub(super) async fn run_connection(accepted: AcceptedConnection, shared: Arc<ListenerState>) {
    let AcceptedConnection { stream, peer, permit } = accepted;
    let Some(secure) = &shared.secure else {
        return Box::pin(serve_requests(stream, &shared.app, peer, &permit, &shared)).await;
    };
    let opened = tokio::select! {
        opened = open_stream(stream, secure) => opened,
        why = await_interruption(&permit, &shared) => {
            return tracing::debug!(%peer, why, "connection closed");
        }
    };
    match opened {
        Ok(OpenedStream::Secure(stream)) => {
            Box::pin(serve_requests(*stream, &shared.app, peer, &permit, &shared)).await;
        }
        Ok(OpenedStream::Plain(stream)) => {
            Box::pin(serve_requests(stream, &secure.plain, peer, &permit, &shared)).await
        }
        Ok(OpenedStream::Nothing) => {}
        Err(error) => {
            if let Some(others) = shared.unopened.pass() {
                tracing::warn!(%peer, error = %format_error_chain(&error), others, "no TLS with a peer");
            }
        }
    }
}

/// Beginning of a connection.
enum OpenedStream {
    Secure(Box<TlsStream<WatchedStream>>),
    Plain(WatchedStream),
    /// The peer closed the connection before its first byte.
    Nothing,
}

// Content type of a TLS handshake record (RFC 8446, section 5.1). No HTTP method begins with this byte.
const HANDSHAKE: u8 = 22;

async fn open_stream(stream: WatchedStream, secure: &ListenerTls) -> io::Result<OpenedStream> {
    match stream.first_byte().await? {
        None => Ok(OpenedStream::Nothing),
        Some(HANDSHAKE) => {
            let stream = secure.server.accept(stream).await?;
            Ok(OpenedStream::Secure(Box::new(stream)))
        }
        Some(_) => Ok(OpenedStream::Plain(stream)),
    }
}

/// Waits for an event that interrupts a connection in any state, and returns its name for the log.
async fn await_interruption(permit: &ConnectionPermit, shared: &ListenerState) -> &'static str {
    tokio::select! {
        why = permit.interrupted(&shared.limits) => why,
        () = shared.cut.cancelled() => "the server stops",
    }
}

/// Serves HTTP/1.1 on a plain or encrypted stream.
async fn serve_requests<S>(
    stream: S,
    app: &Router,
    peer: SocketAddr,
    permit: &ConnectionPermit,
    shared: &Arc<ListenerState>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (watch, shared) = (Arc::clone(&permit.watch), Arc::clone(shared));
        answer_request(request, app.clone(), peer, watch, shared)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // The watch tracks the phases. This limit applies where the watch cannot see them, as with pipelined
        // requests.
        .header_read_timeout(shared.limits.idle.max(shared.limits.head))
        .max_buf_size(MAX_HEAD);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(serving.with_upgrades());
    let mut stopping = false;
    let ended = loop {
        tokio::select! {
            served = connection.as_mut() => match served {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%peer, error = %format_error_chain(&error), "connection broke off");
                    return;
                }
            },
            why = await_interruption(permit, shared) => break why,
            // The token stays cancelled, so without the guard this branch would spin.
            () = shared.stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    tracing::debug!(%peer, why = ended, "connection closed");
}

async fn answer_request(
    request: Request<Incoming>,
    mut app: Router,
    peer: SocketAddr,
    watch: Arc<ConnectionWatch>,
    shared: Arc<ListenerState>,
) -> Result<Response<Body>, Infallible> {
    let has_body = !request.body().is_end_stream();
    watch.request(has_body);
    let arriving = has_body.then(|| ArrivingBody(Arc::clone(&watch)));
    let busy = RequestInProgress(watch);
    // Boxed behind the minimum rate here, so that every handler gets it, whichever way it reads the body.
    let mut request = request.map(|body| Body::new(MinRateBody::new(body, arriving)));
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut response = app.call(request).await?;
    // A reused connection could end before its next request arrives, and that request would be lost.
    if shared.closing.is_cancelled() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response.map(|body| Body::new(ResponseBody { body, _busy: busy })))
}

/// Marks a request's body as complete when it is dropped.
pub(super) struct ArrivingBody(Arc<ConnectionWatch>);

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        self.0.body_complete();
    }
}

/// Marks the request in progress as answered when it is dropped.
struct RequestInProgress(Arc<ConnectionWatch>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.answered();
    }
}

/// Body of a response. The request is in progress until it is dropped.
struct ResponseBody {
    body: Body,
    _busy: RequestInProgress,
}

impl HttpBody for ResponseBody {
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
