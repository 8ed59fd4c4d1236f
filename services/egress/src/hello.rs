//! The first record of a tunnel: a TLS `ClientHello` that names the host.

use std::{io, time::Duration};

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::problem::RefusalReason;

/// Longest `ClientHello`, in bytes. With post-quantum keys one has about 2 KiB.
const MAX_HELLO: usize = 32 * 1024;
const CHUNK: usize = 4096;

/// Reads until the `ClientHello` is complete, and returns every byte that was read.
///
/// # Errors
/// [`RefusalReason::NotTls`] unless a `ClientHello` of at most 32 KiB arrives within the limit. [`RefusalReason::OtherName`] if it
/// names another host or none.
pub(crate) async fn read_client_hello(
    client: &mut (impl AsyncRead + Unpin),
    host: &str,
    limit: Duration,
) -> Result<Vec<u8>, RefusalReason> {
    let reading = tokio::time::timeout(limit, read_whole(client));
    let (bytes, name) = reading.await.map_err(|_| RefusalReason::NotTls)??;
    match name {
        Some(name) if name.eq_ignore_ascii_case(host) => Ok(bytes),
        Some(_) | None => Err(RefusalReason::OtherName),
    }
}

async fn read_whole(
    client: &mut (impl AsyncRead + Unpin),
) -> Result<(Vec<u8>, Option<String>), RefusalReason> {
    let mut hello = ClientHelloReader::default();
    let mut bytes = Vec::new();
    while bytes.len() < MAX_HELLO {
        let mut chunk = [0; CHUNK];
        let count = client.read(&mut chunk).await.map_err(|_| RefusalReason::NotTls)?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&chunk[..count]);
        if let Some(name) = hello.add(&chunk[..count])? {
            return Ok((bytes, name));
        }
    }
    Err(RefusalReason::NotTls)
}

#[derive(Default)]
struct ClientHelloReader(Acceptor);

impl ClientHelloReader {
    /// Returns the server name of the `ClientHello` (`Some(None)` if it names none), or `None` until it is complete.
    fn add(&mut self, mut bytes: &[u8]) -> Result<Option<Option<String>>, RefusalReason> {
        let not_tls = |_: io::Error| RefusalReason::NotTls;
        while !bytes.is_empty() {
            self.0.read_tls(&mut bytes).map_err(not_tls)?;
            if let Some(accepted) = self.0.accept().map_err(|_| RefusalReason::NotTls)? {
                let hello = accepted.client_hello();
                return Ok(Some(hello.server_name().map(str::to_owned)));
            }
        }
        Ok(None)
    }
}
