//! Proxy to a remote that ends a number of connections after some bytes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Running proxy; it ends with the test's runtime.
pub(crate) struct CuttingProxy {
    /// Base URL of the proxy.
    pub(crate) url: String,
    /// Bytes passed on from the remote.
    pub(crate) passed: Arc<AtomicU64>,
    /// Number of connections that it still interrupts.
    pub(crate) cuts: Arc<AtomicUsize>,
}

impl CuttingProxy {
    /// Passes bytes on to `remote` (`http://host:port`) and ends each of the next `cuts` answers after
    /// `after` bytes.
    pub(crate) async fn start(remote: &str, after: u64, cuts: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let remote = remote.strip_prefix("http://").unwrap().to_owned();
        let (passed, cuts) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(cuts)));
        let shared = (Arc::clone(&passed), Arc::clone(&cuts));
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&remote).await.unwrap();
                let (passed, cuts) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                tokio::spawn(forward_until_cut(client, server, after, passed, cuts));
            }
        });
        Self { url, passed, cuts }
    }
}

async fn forward_until_cut(
    client: TcpStream,
    server: TcpStream,
    after: u64,
    passed: Arc<AtomicU64>,
    cuts: Arc<AtomicUsize>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let (mut chunk, mut count) = (vec![0; 16 * 1024], 0);
    while let Ok(read) = from_server.read(&mut chunk).await {
        if read == 0 || to_client.write_all(&chunk[..read]).await.is_err() {
            break;
        }
        count += read as u64;
        passed.fetch_add(read as u64, Ordering::SeqCst);
        let is_cut = |left: usize| left.checked_sub(1).filter(|_| count >= after);
        if cuts
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_cut)
            .is_ok()
        {
            break;
        }
    }
    up.abort();
}
