//! The gRPC server: who is served, and how much one caller and all together may ask for.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use anyhow::Context as _;
use proto::executor::executor_service_server::ExecutorServiceServer;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::Sleep,
};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{
    service::interceptor::InterceptedService,
    transport::server::{Connected, TcpConnectInfo, TcpIncoming},
};
use tonic_health::server::HealthReporter;

use crate::{admission::Admission, registry::Registry, service::Service};

/// How long running calls may go on once the executor has been asked to stop.
const DRAIN_TIME: Duration = Duration::from_secs(15);
/// How long open connections may take after that.
const LINGER: Duration = Duration::from_secs(3);

/// Streams of one connection: a planner has one for each call and one for each run that it watches.
const MAX_STREAMS: u32 = 512;
/// Calls of one connection that wait for their first answer.
const MAX_WAITING_CALLS: usize = 256;
/// Of one request, in bytes; a grant takes most of it.
const MAX_HEADERS: u32 = 16 * 1024;
/// Larger content comes in parts.
const MAX_MESSAGE: usize = 4 << 20;
/// Connections at a time, of all callers and of one address.
const MAX_CONNECTIONS: usize = 512;
const MAX_CONNECTIONS_OF_ONE: usize = 64;
/// How long a connection may take to say that it speaks HTTP/2.
const PREFACE_TIME: Duration = Duration::from_secs(10);
/// The bytes that say so.
const PREFACE_BYTES: usize = 24;
/// A connection ends after this time, so that addresses that no longer count are let go; a call that runs may finish.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// As long as the longest check.
const MAX_AGE_GRACE: Duration = Duration::from_secs(2160);

/// The name under which health is told.
type Contract = ExecutorServiceServer<Service>;

/// Tells probes and callers whether this executor takes work.
#[derive(Clone)]
pub(crate) struct Readiness(HealthReporter);

impl Readiness {
    pub(crate) async fn set(&self, is_ready: bool) {
        if is_ready {
            self.0.set_serving::<Contract>().await;
        } else {
            self.0.set_not_serving::<Contract>().await;
        }
    }
}

/// Serves until `shutdown`. `watch` is given the readiness and runs as long; until it says otherwise the executor is
/// not ready.
pub(crate) async fn serve<F: Future<Output = ()>>(
    registry: Arc<Registry>,
    verifier: grant::Verifier,
    listener: TcpListener,
    shutdown: CancellationToken,
    watch: impl FnOnce(Readiness) -> F,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let readiness = Readiness(health);
    readiness.set(false).await;
    let service = ExecutorServiceServer::new(Service {
        registry: Arc::clone(&registry),
    })
    .max_decoding_message_size(MAX_MESSAGE)
    .max_encoding_message_size(MAX_MESSAGE);
    let drained = CancellationToken::new();
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(15)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_header_list_size(MAX_HEADERS)
        .max_concurrent_streams(MAX_STREAMS)
        .concurrency_limit_per_connection(MAX_WAITING_CALLS)
        .max_connection_age(MAX_AGE)
        .max_connection_age_grace(MAX_AGE_GRACE)
        .add_service(health_service)
        .add_service(InterceptedService::new(service, Admission::new(verifier)))
        .serve_with_incoming_shutdown(incoming(listener), drained.clone().cancelled_owned());
    let stop = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = watch(readiness.clone()) => shutdown.cancelled().await,
        }
        readiness.set(false).await;
        registry.drain();
        let deadline = tokio::time::Instant::now() + DRAIN_TIME;
        while registry.is_busy() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        registry.stop().await;
        drained.cancel();
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        served = server => served.context("serving gRPC"),
        () = stop => Ok(()),
    }
}

/// The connections that there is a seat for; the others are closed.
fn incoming(listener: TcpListener) -> impl Stream<Item = io::Result<Connection>> {
    let seats = Seats::default();
    // Without it Nagle's algorithm and delayed acks add 40 ms to every call.
    let accepted = TcpIncoming::from(listener).with_nodelay(Some(true));
    accepted.filter_map(move |accepted| match accepted {
        Ok(stream) => {
            let address = stream.peer_addr().ok()?.ip().to_canonical();
            let seat = seats.take(address);
            if seat.is_none() {
                tracing::warn!(%address, "a connection is refused: too many are open");
            }
            Some(Ok(Connection::new(stream, seat?)))
        }
        Err(error) => Some(Err(error)),
    })
}

/// Open connections by address.
#[derive(Clone, Default)]
struct Seats(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Taken as long as a connection is open.
struct Seat {
    seats: Seats,
    address: IpAddr,
}

impl Seats {
    fn take(&self, address: IpAddr) -> Option<Seat> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&address).copied().unwrap_or(0);
        if all >= MAX_CONNECTIONS || own >= MAX_CONNECTIONS_OF_ONE {
            return None;
        }
        open.insert(address, own + 1);
        Some(Seat {
            seats: self.clone(),
            address,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// A connection that must say soon what it speaks; from then on HTTP/2 pings it.
struct Connection {
    stream: TcpStream,
    /// Bytes that are still missing, and when the wait for them is over.
    preface: Option<(usize, Pin<Box<Sleep>>)>,
    _seat: Seat,
}

impl Connection {
    fn new(stream: TcpStream, seat: Seat) -> Self {
        Self {
            stream,
            preface: Some((PREFACE_BYTES, Box::pin(tokio::time::sleep(PREFACE_TIME)))),
            _seat: seat,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some((_, silence)) = &mut self.preface
            && silence.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len() - before;
        self.preface = self.preface.take().and_then(|(missing, silence)| {
            Some((missing.checked_sub(count).filter(|left| *left > 0)?, silence))
        });
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_say_what_it_speaks_ends_and_one_that_does_goes_on() {
        for (said, ends) in [
            ("", true),
            ("PRI * HTTP/2.0", true),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            caller.write_all(said.as_bytes()).await.unwrap();
            let (stream, address) = listener.accept().await.unwrap();
            let mut connection = Connection::new(stream, Seats::default().take(address.ip()).unwrap());
            let mut heard = vec![0; said.len()];
            connection.read_exact(&mut heard).await.unwrap();
            let silence = tokio::time::timeout(PREFACE_TIME * 2, connection.read_u8()).await;
            assert_eq!(silence.is_ok_and(|read| read.is_err()), ends, "{said:?}");
        }
    }

    #[test]
    fn one_address_cannot_take_the_seats_of_others() {
        let seats = Seats::default();
        let [greedy, other] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse::<IpAddr>().unwrap());
        let taken: Vec<Seat> = std::iter::from_fn(|| seats.take(greedy)).collect();
        assert_eq!(taken.len(), MAX_CONNECTIONS_OF_ONE);
        assert!(seats.take(other).is_some());
        drop(taken);
        assert!(seats.take(greedy).is_some());
        assert!(
            seats.0.lock().unwrap().is_empty(),
            "nothing is kept for addresses that went"
        );
    }
}
