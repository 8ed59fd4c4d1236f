//! Incoming connections of planners: their limits, their first bytes, and their TLS handshake.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bootstrap::{http::ThrottledLog, tls};
use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::Sleep,
};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};

/// Limits of open connections: in total, and from one address.
const MAX_CONNECTIONS: usize = 512;
const MAX_CONNECTIONS_OF_ONE: usize = 64;
/// Time limit for the preface of HTTP/2.
const PREFACE_TIME: Duration = Duration::from_secs(10);
/// Length of the client's preface (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
/// Time limit for a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Pause between two log lines about failed handshakes.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Stream of connections that may send requests.
pub(crate) fn accept_connections(
    listener: TcpListener,
    tls: Option<tls::TlsServer>,
) -> impl Stream<Item = io::Result<PlannerConnection>> {
    let accepted = admit_connections(listener);
    match tls {
        None => Either::Left(accepted.map(|accepted| accepted.map(PlannerConnection::plain))),
        Some(tls) => Either::Right(secure_connections(accepted, tls)),
    }
}

/// Performs the TLS handshakes. Each runs in its own task, so that a slow one does not delay others.
fn secure_connections(
    accepted: impl Stream<Item = io::Result<AcceptedConnection>> + Send + 'static,
    tls: tls::TlsServer,
) -> ReceiverStream<io::Result<PlannerConnection>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let log = Arc::new(ThrottledLog::new(LOG_PAUSE));
        let mut accepted = pin!(accepted);
        let mut handshakes = JoinSet::new();
        loop {
            tokio::select! {
                // The server has stopped. Dropping `handshakes` aborts the remaining ones.
                () = sender.closed() => return,
                next = accepted.next() => match next {
                    None => return,
                    Some(Err(error)) => drop(sender.send(Err(error)).await),
                    Some(Ok(connection)) => {
                        let (tls, log, sender) = (tls.clone(), Arc::clone(&log), sender.clone());
                        handshakes.spawn(async move {
                            if let Some(link) = shake_hands(connection, &tls, &log).await {
                                // The result is ignored: during a stop no receiver exists.
                                drop(sender.send(Ok(link)).await);
                            }
                        });
                    }
                },
                Some(_) = handshakes.join_next() => {}
            }
        }
    });
    ReceiverStream::new(receiver)
}

async fn shake_hands(
    connection: AcceptedConnection,
    tls: &tls::TlsServer,
    log: &ThrottledLog,
) -> Option<PlannerConnection> {
    // Read before the handshake, which consumes the connection.
    let info = connection.connect_info();
    let shaken = tokio::time::timeout(HANDSHAKE_TIME, tls.accept(connection)).await;
    let problem = match shaken {
        Ok(Ok(stream)) => {
            return Some(PlannerConnection {
                io: Either::Right(Box::new(stream)),
                info,
            });
        }
        Ok(Err(error)) => format_error_chain(&error),
        Err(_) => "it takes too long".to_owned(),
    };
    if let Some(others) = log.pass() {
        tracing::warn!(peer = ?info.remote_addr(), problem, others, "no TLS with a caller");
    }
    None
}

/// A connection with or without TLS.
pub(crate) struct PlannerConnection {
    io: Either<AcceptedConnection, Box<tls::AcceptedTlsStream<AcceptedConnection>>>,
    info: TcpConnectInfo,
}

impl PlannerConnection {
    fn plain(connection: AcceptedConnection) -> Self {
        let info = connection.connect_info();
        Self {
            io: Either::Left(connection),
            info,
        }
    }
}

impl Connected for PlannerConnection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.info.clone()
    }
}

impl AsyncRead for PlannerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for PlannerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// Accepts connections within the limits and closes the others.
fn admit_connections(listener: TcpListener) -> impl Stream<Item = io::Result<AcceptedConnection>> {
    let seats = AddressCounts::default();
    // Without `TCP_NODELAY`, Nagle's algorithm and delayed acknowledgments add 40 ms to every call.
    let accepted = TcpIncoming::from(listener).with_nodelay(Some(true));
    accepted.filter_map(move |accepted| match accepted {
        Ok(stream) => {
            // On a dual-stack socket an IPv4 caller has a mapped IPv6 address; both forms count as one.
            let address = stream.peer_addr().ok()?.ip().to_canonical();
            let seat = seats.take(address);
            if seat.is_none() {
                tracing::warn!(%address, "a connection is refused: too many are open");
            }
            Some(Ok(AcceptedConnection::new(stream, seat?)))
        }
        Err(error) => Some(Err(error)),
    })
}

/// Number of open connections by address.
#[derive(Clone, Default)]
struct AddressCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Permit of an open connection, counted until it is dropped.
struct AddressPermit {
    seats: AddressCounts,
    address: IpAddr,
}

impl AddressCounts {
    fn take(&self, address: IpAddr) -> Option<AddressPermit> {
        let mut open = self.0.lock();
        let all: usize = open.values().sum();
        let own = open.get(&address).copied().unwrap_or(0);
        if all >= MAX_CONNECTIONS || own >= MAX_CONNECTIONS_OF_ONE {
            return None;
        }
        open.insert(address, own + 1);
        Some(AddressPermit {
            seats: self.clone(),
            address,
        })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut open = self.seats.0.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            // Without the removal the map would grow with every address that ever connected.
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// Connection that must send the HTTP/2 preface in time. Afterwards the keepalive of HTTP/2 detects a silent
/// peer.
struct AcceptedConnection {
    stream: TcpStream,
    /// Missing bytes of the preface, and the end of the wait for them.
    preface: Option<(usize, Pin<Box<Sleep>>)>,
    _seat: AddressPermit,
}

impl AcceptedConnection {
    fn new(stream: TcpStream, seat: AddressPermit) -> Self {
        Self {
            stream,
            preface: Some((PREFACE_BYTES, Box::pin(tokio::time::sleep(PREFACE_TIME)))),
            _seat: seat,
        }
    }
}

impl AsyncRead for AcceptedConnection {
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
        // The timer continues until the whole preface has arrived, so single bytes do not extend it.
        self.preface = self.preface.take().and_then(|(missing, silence)| {
            Some((missing.checked_sub(count).filter(|left| *left > 0)?, silence))
        });
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AcceptedConnection {
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

impl Connected for AcceptedConnection {
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
    async fn connection_without_preface_is_closed() {
        for (said, ends) in [
            ("", true),
            ("PRI * HTTP/2.0", true),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            caller.write_all(said.as_bytes()).await.unwrap();
            let (stream, address) = listener.accept().await.unwrap();
            let mut connection =
                AcceptedConnection::new(stream, AddressCounts::default().take(address.ip()).unwrap());
            let mut heard = vec![0; said.len()];
            connection.read_exact(&mut heard).await.unwrap();
            let silence = tokio::time::timeout(PREFACE_TIME * 2, connection.read_u8()).await;
            assert_eq!(silence.is_ok_and(|read| read.is_err()), ends, "{said:?}");
        }
    }

    #[test]
    fn address_cannot_exceed_its_connection_share() {
        let seats = AddressCounts::default();
        let [greedy, other] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse::<IpAddr>().unwrap());
        let taken: Vec<AddressPermit> = std::iter::from_fn(|| seats.take(greedy)).collect();
        assert_eq!(taken.len(), MAX_CONNECTIONS_OF_ONE);
        assert!(seats.take(other).is_some());
        drop(taken);
        assert!(seats.take(greedy).is_some());
        assert!(
            seats.0.lock().is_empty(),
            "nothing is kept for addresses that went"
        );
    }
}
