//! Choice of the NATS server that answers: all addresses are tried at once, so that one on a lost node costs no time.
//!
//! The client itself tries one server after another, and looks its name up without a limit: with a lost name server a single
//! look-up takes tens of seconds.

use std::{future::Future, net::IpAddr, pin::pin, time::Duration};

use async_nats::{ReconnectToServer, Server, ServerAddr, ServerInfo};
use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

/// Limit of connecting to one server, its look-up included; the others are tried meanwhile.
pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Names are tried this much later than addresses, which need no look-up when the client connects afterwards.
const NAME_DELAY: Duration = Duration::from_millis(100);
/// Between two rounds in which no server answered.
const PAUSE: Duration = Duration::from_millis(200);

/// The server to connect to next. At the first connect, whose errors an operator reads, the client tries its own way after one round
/// without an answer.
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

/// The address when a server greets there within the limit, which includes the look-up. A kernel still accepts connections for a
/// process that hangs.
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

/// The first answer that is one.
async fn first_success<T, F: Future<Output = Option<T>>>(tries: impl Iterator<Item = F>) -> Option<T> {
    let tries: FuturesUnordered<F> = tries.collect();
    let mut answers = pin!(tries.filter_map(|answer| async { answer }));
    answers.next().await
}
