//! One connection: what it waits for, since when, and how it ends.

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
use domain::cause::chain;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;
use tower::Service as _;

use super::{
    Secure, Shared,
    pace::Paced,
    table::Seat,
    watch::{Watch, Watched},
};

/// Longest head of a request.
const MAX_HEAD: usize = 32 * 1024;

/// Serves requests until the connection ends, its peer takes too long, its place is needed, or the server stops.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, seat: Seat, shared: Arc<Shared>) {
    // Small answers leave at once, instead of waiting 40 ms for Nagle's algorithm.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %chain(&error), "TCP_NODELAY was not set");
    }
    let stream = Watched::new(stream, Arc::clone(&seat.watch));
    let Some(secure) = &shared.secure else {
        return Box::pin(speak(stream, &shared.app, peer, &seat, &shared)).await;
    };
    let opened = tokio::select! {
        opened = open(stream, secure) => opened,
        why = interruption(&seat, &shared) => {
            return tracing::debug!(%peer, why, "connection closed");
        }
    };
    match opened {
        Ok(Opened::Secure(stream)) => {
            Box::pin(speak(*stream, &shared.app, peer, &seat, &shared)).await;
        }
        Ok(Opened::Plain(stream)) => Box::pin(speak(stream, &secure.plain, peer, &seat, &shared)).await,
        Ok(Opened::Nothing) => {}
        Err(error) => {
            if let Some(others) = shared.unopened.pass() {
                tracing::warn!(%peer, error = %chain(&error), others, "no TLS with a peer");
            }
        }
    }
}

/// How a connection began.
enum Opened {
    Secure(Box<TlsStream<Watched>>),
    Plain(Watched),
    /// Its peer went without a word.
    Nothing,
}

/// The first byte of TLS.
const HANDSHAKE: u8 = 22;

async fn open(stream: Watched, secure: &Secure) -> io::Result<Opened> {
    match stream.first_byte().await? {
        None => Ok(Opened::Nothing),
        Some(HANDSHAKE) => {
            let stream = secure.server.accept(stream).await?;
            Ok(Opened::Secure(Box::new(stream)))
        }
        Some(_) => Ok(Opened::Plain(stream)),
    }
}

/// Waits for what ends a connection whatever it is at, and says what it was.
async fn interruption(seat: &Seat, shared: &Shared) -> &'static str {
    tokio::select! {
        why = seat.watch.overdue(&shared.limits) => why,
        () = seat.evicted.cancelled() => "its place was needed",
        () = shared.cut.cancelled() => "the server stops",
    }
}

/// HTTP/1.1 on a stream, whatever is beneath.
async fn speak<S>(stream: S, app: &Router, peer: SocketAddr, seat: &Seat, shared: &Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (watch, shared) = (Arc::clone(&seat.watch), Arc::clone(shared));
        answer(request, app.clone(), peer, watch, shared)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // The watch knows the phases; this holds where it does not see them, as with pipelined requests.
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
                    tracing::debug!(%peer, error = %chain(&error), "connection broke off");
                    return;
                }
            },
            why = interruption(seat, shared) => break why,
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
    mut app: Router,
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
    let mut response = app.call(request).await?;
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
