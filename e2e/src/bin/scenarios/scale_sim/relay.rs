//! Relay in front of NATS or Redis that counts messages by kind.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

/// Number of messages by kind.
pub(crate) type MessageCounts = BTreeMap<&'static str, u64>;

/// Protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayProtocol {
    Nats,
    Redis,
}

/// Relay on a free port.
pub(crate) struct CountingRelay {
    address: String,
    counts: Arc<Mutex<MessageCounts>>,
    _serving: AbortOnDropHandle<()>,
}

impl CountingRelay {
    /// Starts a relay to a server at an address such as `127.0.0.1:4222`.
    pub(crate) async fn start(protocol: RelayProtocol, server: String) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let counts = Arc::new(Mutex::new(MessageCounts::new()));
        let counted = Arc::clone(&counts);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay_connection(
                    protocol,
                    client,
                    server.clone(),
                    Arc::clone(&counted),
                ));
            }
        });
        Ok(Self {
            address,
            counts,
            _serving: AbortOnDropHandle::new(serving),
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn counts(&self) -> MessageCounts {
        self.counts.lock().clone()
    }
}

/// Counts since an earlier count.
pub(crate) fn subtract_counts(now: MessageCounts, before: &MessageCounts) -> MessageCounts {
    let less =
        |(kind, count): (&'static str, u64)| (kind, count - before.get(kind).copied().unwrap_or_default());
    now.into_iter().map(less).collect()
}

async fn relay_connection(
    protocol: RelayProtocol,
    client: TcpStream,
    server: String,
    counts: Arc<Mutex<MessageCounts>>,
) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    // Only messages of the clients are counted.
    let up = count_messages(protocol, BufReader::new(from_client), to_server, &counts);
    let down = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::select! {
        _ = up => {}
        _ = down => {}
    }
}

/// Forwards the client's data and counts each message or command.
async fn count_messages(
    protocol: RelayProtocol,
    mut from: impl AsyncBufRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    counts: &Mutex<MessageCounts>,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        let (kind, body) = match protocol {
            RelayProtocol::Nats => classify_nats_line(&text),
            RelayProtocol::Redis => classify_redis_line(&text),
        };
        to.write_all(&line).await?;
        if body > 0 {
            let mut body = vec![0; body];
            from.read_exact(&mut body).await?;
            to.write_all(&body).await?;
        }
        if let Some(kind) = kind {
            let mut counts = counts.lock();
            *counts.entry(kind).or_default() += 1;
        }
    }
}

/// Returns the kind of a NATS protocol line, and the number of payload bytes that follow.
fn classify_nats_line(line: &str) -> (Option<&'static str>, usize) {
    let mut words = line.split_whitespace();
    let verb = words.next().unwrap_or_default();
    if !matches!(verb, "PUB" | "HPUB") {
        return (None, 0);
    }
    let subject = words.next().unwrap_or_default();
    // The last word is the total size. A reply subject may precede it.
    let size: usize = words
        .next_back()
        .and_then(|size| size.parse().ok())
        .unwrap_or_default();
    (Some(kind_of(subject)), size + "\r\n".len())
}

fn kind_of(subject: &str) -> &'static str {
    const KINDS: [(&str, &str); 6] = [
        ("journeyman.live.", "live output"),
        ("journeyman.", "stored"),
        ("$KV.", "stored"),
        ("$O.", "stored"),
        ("$JS.ACK.", "acknowledged, or in progress"),
        ("$JS.API.CONSUMER.MSG.NEXT.", "asked for the next one"),
    ];
    let found = KINDS.iter().find(|(start, _)| subject.starts_with(start));
    found.map_or("read and managed", |(_, kind)| kind)
}

/// Returns the kind of a Redis protocol line, and the number of bytes that follow. A command starts with the
/// number of its parts; each part is a line with its size and a line with its content.
fn classify_redis_line(line: &str) -> (Option<&'static str>, usize) {
    if let Some(size) = line.strip_prefix('$') {
        let size: usize = size.trim().parse().unwrap_or_default();
        return (None, size + "\r\n".len());
    }
    (line.starts_with('*').then_some("commands"), 0)
}
