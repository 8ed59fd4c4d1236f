//! Choice of a NATS server that answers: all addresses are tried at once, so that a lost node costs no time.
//!
//! The client itself tries one server after another and resolves names without a time limit. With a lost name
//! server, one look-up takes tens of seconds.

use std::{future::Future, net::IpAddr, pin::pin, time::Duration};

use async_nats::{ReconnectToServer, Server, ServerAddr, ServerInfo};
use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

// Limit of connecting to one server, including name resolution. The other servers are tried meanwhile.
pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
// Names are tried later than addresses, because the client resolves the chosen one again when it connects.
const NAME_DELAY: Duration = Duration::from_millis(100);
/// Pause between two rounds in which no server answered.
const PAUSE: Duration = Duration::from_millis(200);

/// Chooses the server to connect to next.
///
/// At the first connect, the client uses its own way after one round without an answer: its errors name the
/// reason, and an operator reads them.
pub(crate) async fn choose_server(servers: Vec<Server>, last: ServerInfo) -> Option<ReconnectToServer> {
    let is_first = last.server_id.is_empty();
    loop {
        let tries = servers.iter().map(|server| reach_server(&server.addr));
        if let Some(addr) = first_success(tries).await {
            return Some(ReconnectToServer {
                addr,
                delay: Some(Duration::ZERO),
            });
        }
        if is_first {
            return None;
        }
        sleep(PAUSE).await;
    }
}

/// Returns the address if a server sends its greeting within the limit, name resolution included.
///
/// A connection alone proves nothing: the kernel accepts connections for a hanging process too.
async fn reach_server(addr: &ServerAddr) -> Option<ServerAddr> {
    if addr.host().parse::<IpAddr>().is_err() {
        sleep(NAME_DELAY).await;
    }
    let greeting = async {
        let stream = TcpStream::connect((addr.host(), addr.port())).await?;
        stream.peek(&mut [0]).await
    };
    let greeted = timeout(SERVER_TIMEOUT, greeting).await;
    matches!(greeted, Ok(Ok(bytes)) if bytes > 0).then(|| addr.clone())
}

/// First attempt that yields a value.
async fn first_success<T, F: Future<Output = Option<T>>>(tries: impl Iterator<Item = F>) -> Option<T> {
    let tries: FuturesUnordered<F> = tries.collect();
    let mut answers = pin!(tries.filter_map(|answer| async { answer }));
    answers.next().await
}
