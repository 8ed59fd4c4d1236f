//! Connections of a gRPC listener, for the HTTP/2 server of tonic.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use domain::cause::format_error_chain;
use futures::{Stream, StreamExt as _, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpListener,
};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::{
    ListenerLimits,
    acceptor::{AcceptedConnection, ConnectionAcceptor, LOG_PAUSE, ThrottledLog},
    table::ConnectionPermit,
    watch::WatchedStream,
};
use crate::tls::TlsServer;

/// Length of the client's preface (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;

/// Connections of a gRPC listener that may send requests, after their TLS handshake if `tls` is set.
///
/// Until the preface of HTTP/2 has arrived, a connection has the time limit `head` and loses its place to
/// a newer one. Later limits are those of tonic's server, which also ends the connections at shutdown: the
/// stream only has to be dropped.
pub fn accept_grpc(
    listener: TcpListener,
    tls: Option<TlsServer>,
    limits: ListenerLimits,
) -> impl Stream<Item = io::Result<GrpcConnection>> + Send {
    let acceptor = ConnectionAcceptor::new(listener, &limits);
    let shared = Arc::new(GrpcListener {
        tls,
        limits,
        unopened: ThrottledLog::new(LOG_PAUSE),
    });
    let accepted = stream::unfold(acceptor, |acceptor| async move {
        let accepted = acceptor.accept().await;
        Some((accepted, acceptor))
    });
    accepted
        .map(move |accepted| open_connection(accepted, Arc::clone(&shared)))
        // Side by side, so that a slow handshake does not delay others.
        .buffer_unordered(limits.connections)
        .filter_map(|opened| std::future::ready(opened.map(Ok::<_, io::Error>)))
}

/// State that the connections of one gRPC listener share.
struct GrpcListener {
    tls: Option<TlsServer>,
    limits: ListenerLimits,
    /// Throttle for log lines about failed TLS handshakes.
    unopened: ThrottledLog,
}

async fn open_connection(
    accepted: AcceptedConnection,
    listener: Arc<GrpcListener>,
) -> Option<GrpcConnection> {
    let AcceptedConnection { stream, peer, permit } = accepted;
    // Read before the handshake, which consumes the stream.
    let info = stream.connect_info();
    let Some(tls) = &listener.tls else {
        return Some(GrpcConnection::new(
            Either::Left(stream),
            info,
            permit,
            listener.limits,
        ));
    };
    let problem = tokio::select! {
        opened = tls.accept(stream) => match opened {
            Ok(stream) => {
                let stream = Either::Right(Box::new(stream));
                return Some(GrpcConnection::new(stream, info, permit, listener.limits));
            }
            Err(error) => format_error_chain(&error),
        },
        why = permit.interrupted(&listener.limits) => why.to_owned(),
    };
    if let Some(others) = listener.unopened.pass() {
        tracing::warn!(%peer, problem, others, "no TLS with a caller");
    }
    None
}

/// Connection of a gRPC listener, with or without TLS.
pub struct GrpcConnection {
    stream: Either<WatchedStream, Box<TlsStream<WatchedStream>>>,
    info: TcpConnectInfo,
    preface: PrefaceState,
    permit: Arc<ConnectionPermit>,
}

/// Arrival of the client's preface.
enum PrefaceState {
    Awaited {
        missing: usize,
        /// Ends when the time is over or the place is needed.
        interrupted: Pin<Box<dyn Future<Output = &'static str> + Send>>,
    },
    Complete,
    /// The wait was interrupted, for this reason.
    Missed(&'static str),
}

impl GrpcConnection {
    fn new(
        stream: Either<WatchedStream, Box<TlsStream<WatchedStream>>>,
        info: TcpConnectInfo,
        permit: ConnectionPermit,
        limits: ListenerLimits,
    ) -> Self {
        let permit = Arc::new(permit);
        let interrupted = {
            let permit = Arc::clone(&permit);
            async move { permit.interrupted(&limits).await }
        };
        let preface = PrefaceState::Awaited {
            missing: PREFACE_BYTES,
            interrupted: Box::pin(interrupted),
        };
        Self {
            stream,
            info,
            preface,
            permit,
        }
    }

    fn receive(&mut self, bytes: usize) {
        if let PrefaceState::Awaited { missing, .. } = &mut self.preface {
            // The timer continues until the whole preface has arrived, so single bytes do not extend it.
            *missing = missing.saturating_sub(bytes);
            if *missing == 0 {
                self.preface = PrefaceState::Complete;
                // From here on the connection keeps its place: a caller may be silent for as long as its
                // call runs, and the keepalive of HTTP/2 detects a peer that vanished.
                self.permit.watch.request(false);
            }
        }
    }
}

impl Connected for GrpcConnection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.info.clone()
    }
}

impl AsyncRead for GrpcConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let PrefaceState::Awaited { interrupted, .. } = &mut self.preface
            && let Poll::Ready(why) = interrupted.as_mut().poll(cx)
        {
            self.preface = PrefaceState::Missed(why);
        }
        if let PrefaceState::Missed(why) = self.preface {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        self.receive(into.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for GrpcConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    #[tokio::test]
    async fn connection_without_preface_is_closed() {
        let limits = ListenerLimits::default();
        for (sent, ends) in [("", true), ("PRI * HTTP/2.0", true), (PREFACE, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            caller.write_all(sent.as_bytes()).await.unwrap();
            let mut accepted = pin!(accept_grpc(listener, None, limits));
            let mut connection = accepted.next().await.unwrap().unwrap();
            let mut received = vec![0; sent.len()];
            connection.read_exact(&mut received).await.unwrap();
            // A paused clock may pass a deadline while bytes are on their way, so it is paused only now.
            tokio::time::pause();
            let silence = tokio::time::timeout(limits.head * 2, connection.read_u8()).await;
            assert_eq!(silence.is_ok_and(|read| read.is_err()), ends, "{sent:?}");
            tokio::time::resume();
        }
    }

    #[tokio::test]
    async fn only_connection_without_preface_loses_place() {
        let limits = ListenerLimits {
            per_address: 1,
            ..ListenerLimits::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut accepted = pin!(accept_grpc(listener, None, limits));
        let _silent_caller = TcpStream::connect(address).await.unwrap();
        let mut silent = accepted.next().await.unwrap().unwrap();
        let mut caller = TcpStream::connect(address).await.unwrap();
        caller.write_all(PREFACE.as_bytes()).await.unwrap();
        let mut opened = accepted.next().await.unwrap().unwrap();
        assert!(silent.read_u8().await.is_err());
        opened.read_exact(&mut [0; PREFACE_BYTES]).await.unwrap();
        let mut refused = TcpStream::connect(address).await.unwrap();
        tokio::select! {
            _ = accepted.next() => panic!("the opened connection lost its place"),
            ended = refused.read_u8() => assert!(ended.is_err()),
        }
    }
}
