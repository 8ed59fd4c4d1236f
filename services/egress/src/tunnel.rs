//! Tunnels: dialed at a checked address, opened by a TLS `ClientHello` for the requested host, and counted.

use std::{io, time::Duration};

use domain::cause::format_error_chain;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use rustls::server::Acceptor;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    exchange::MeteredExchange,
    problem::{EgressProblem, RefusalReason},
    request_decision::RequestTarget,
    resolve::{CheckedResolver, ResolveError},
};

const CHUNK: usize = 16 * 1024;
/// Longest `ClientHello`, in bytes. With post-quantum keys one has about 2 KiB.
const MAX_HELLO: usize = 32 * 1024;
/// Bytes of a `ClientHello` that are read at a time.
const HELLO_CHUNK: usize = 4096;

/// Connects to the first address that answers. The name is resolved once, and only the checked addresses are dialed.
///
/// # Errors
/// A refusal if an address is not public, else [`EgressProblem::Unreachable`].
pub(crate) async fn dial_target(
    checked: &CheckedResolver,
    target: &RequestTarget,
    limit: Duration,
) -> Result<TcpStream, EgressProblem> {
    let unreachable = |why: &str| EgressProblem::Unreachable(format!("{target} {why}"));
    match tokio::time::timeout(limit, connect_first_address(checked, target, limit)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(DialError::Name(ResolveError::NotPublic))) => Err(EgressProblem::refused(
            &target.to_string(),
            RefusalReason::NotPublic,
        )),
        Ok(Err(DialError::Name(ResolveError::Unknown(_)))) => Err(unreachable("cannot be resolved")),
        Ok(Err(DialError::Silent)) | Err(_) => Err(unreachable("cannot be reached")),
    }
}

enum DialError {
    Name(ResolveError),
    Silent,
}

async fn connect_first_address(
    checked: &CheckedResolver,
    target: &RequestTarget,
    limit: Duration,
) -> Result<TcpStream, DialError> {
    let addresses = checked.addresses(&target.host).await.map_err(DialError::Name)?;
    // The limit is divided by the number of addresses, so that one silent address leaves time for the others.
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    for address in addresses {
        let connecting = TcpStream::connect((address, target.port));
        match tokio::time::timeout(limit / count, connecting).await {
            Ok(Ok(stream)) => {
                // Without TCP_NODELAY a tunnel is slower, but works.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => {
                tracing::debug!(%address, error = %format_error_chain(&error), "address cannot be reached")
            }
            Err(_) => tracing::debug!(%address, "address is silent"),
        }
    }
    Err(DialError::Silent)
}

/// Carries bytes both ways until both sides have ended, one fails, or the run's quota is exhausted.
pub(crate) async fn carry_tunnel(
    upgrading: OnUpgrade,
    upstream: TcpStream,
    host: &str,
    exchange: &MeteredExchange,
    hello_limit: Duration,
) {
    let Ok(upgraded) = upgrading.await else { return };
    let passing = pass_bytes(TokioIo::new(upgraded), upstream, host, exchange, hello_limit);
    if let Err(error) = Box::pin(passing).await {
        tracing::debug!(error = %format_error_chain(&error), "tunnel broke off");
    }
}

async fn pass_bytes(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut upstream: TcpStream,
    host: &str,
    exchange: &MeteredExchange,
    hello_limit: Duration,
) -> io::Result<()> {
    // The host receives no byte before its name is verified in the `ClientHello`.
    let hello = read_client_hello(&mut client, host, hello_limit).await;
    let hello = hello.map_err(|reason| exchange.refuse(reason))?;
    exchange.send_chunk(hello.len())?;
    upstream.write_all(&hello).await?;
    let (from_client, to_client) = tokio::io::split(client);
    let (from_upstream, to_upstream) = upstream.into_split();
    let sent = pump_direction(from_client, to_upstream, |bytes| exchange.send_chunk(bytes));
    let received = pump_direction(from_upstream, to_client, |bytes| exchange.receive_chunk(bytes));
    tokio::try_join!(sent, received).map(|_| ())
}

/// Reads until the `ClientHello` is complete, and returns every byte that was read.
///
/// # Errors
/// [`RefusalReason::NotTls`] unless a `ClientHello` of at most 32 KiB arrives within the limit. [`RefusalReason::OtherName`] if it
/// names another host or none.
async fn read_client_hello(
    client: &mut (impl AsyncRead + Unpin),
    host: &str,
    limit: Duration,
) -> Result<Vec<u8>, RefusalReason> {
    let reading = tokio::time::timeout(limit, read_whole_hello(client));
    let (bytes, name) = reading.await.map_err(|_| RefusalReason::NotTls)??;
    match name {
        Some(name) if name.eq_ignore_ascii_case(host) => Ok(bytes),
        Some(_) | None => Err(RefusalReason::OtherName),
    }
}

/// Reads a whole `ClientHello`. Returns all bytes, with the server that it names.
async fn read_whole_hello(
    client: &mut (impl AsyncRead + Unpin),
) -> Result<(Vec<u8>, Option<String>), RefusalReason> {
    let (mut hello, mut bytes) = (Acceptor::default(), Vec::new());
    while bytes.len() < MAX_HELLO {
        let mut chunk = [0; HELLO_CHUNK];
        let count = client.read(&mut chunk).await.map_err(|_| RefusalReason::NotTls)?;
        if count == 0 {
            break;
        }
        let mut rest = &chunk[..count];
        bytes.extend_from_slice(rest);
        while !rest.is_empty() {
            hello.read_tls(&mut rest).map_err(|_| RefusalReason::NotTls)?;
            if let Some(accepted) = hello.accept().map_err(|_| RefusalReason::NotTls)? {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                return Ok((bytes, name));
            }
        }
    }
    Err(RefusalReason::NotTls)
}

/// Copies one direction, and passes the end of the input on as the end of the output.
async fn pump_direction(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(usize) -> io::Result<()>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        // Counted before it is written: the bytes beyond the quota must not leave.
        count(read)?;
        to.write_all(&chunk[..read]).await?;
    }
}
