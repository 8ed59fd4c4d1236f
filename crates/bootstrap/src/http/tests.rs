use std::net::SocketAddr;

use axum::{body::Body, http::HeaderMap, routing::get, routing::post};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::*;

const SOON: Duration = Duration::from_millis(100);
/// Limit that only a failing test reaches.
const NEVER: Duration = Duration::from_secs(120);

struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(limits: ListenerLimits) -> Self {
        Self::start_over(None, limits).await
    }

    async fn start_over(secure: Option<ListenerTls>, limits: ListenerLimits) -> Self {
        let bodies = RequestBodies::new(1024 * 1024, 1024 * 1024);
        let read = async move |headers: HeaderMap, body: Body| match bodies.read(&headers, body).await {
            Ok(bytes) => (axum::http::StatusCode::OK, bytes.len().to_string()),
            Err(error) => (error.status(), error.to_string()),
        };
        let app = Router::new()
            .route("/hello", get(|| async { "hello" }))
            .route("/large", get(|| async { vec![b'x'; 64 * 1024 * 1024] }))
            .route("/read", post(read));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(serve_https(listener, app, secure, limits, shutdown.clone()));
        Self {
            address,
            shutdown,
            serving,
        }
    }

    /// Opens a connection and sends these bytes.
    async fn send(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }

    async fn hello(&self) -> String {
        let mut stream = self.send("GET /hello HTTP/1.1\r\nhost: here\r\n\r\n").await;
        read_until_text(&mut stream, "hello").await
    }

    /// Stops the server while it reads a body of three bytes, sends the rest, and expects the answer and then the end of
    /// the server.
    async fn finish_request(&mut self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin), rest: &[u8]) {
        self.shutdown.cancel();
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        stream.write_all(rest).await.unwrap();
        assert!(
            read_until_text(stream, "\r\n\r\n3")
                .await
                .starts_with("HTTP/1.1 200")
        );
        tokio::time::timeout(NEVER, &mut self.serving)
            .await
            .unwrap()
            .unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Reads until these words arrive.
async fn read_until_text(stream: &mut (impl AsyncRead + Unpin), words: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while !text.contains(words) {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "closed after {text:?}");
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    };
    tokio::time::timeout(NEVER, reading).await.unwrap();
    text
}

/// Waits until the server has closed the connection.
async fn wait_until_closed(mut stream: TcpStream) {
    let mut rest = vec![0; 64 * 1024];
    let reading = async { while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(NEVER, reading)
        .await
        .expect("the connection stays open");
}

/// Waits until the server has closed the connection at its next time limit, which passes at once. No byte may be on its
/// way.
async fn wait_past_limit(stream: TcpStream) {
    tokio::time::pause();
    wait_until_closed(stream).await;
    tokio::time::resume();
}

#[tokio::test]
async fn silent_or_slow_connection_is_closed() {
    let limits = ListenerLimits {
        // Long enough for the complete request on a machine that stands still for some seconds.
        head: NEVER / 4,
        ..ListenerLimits::default()
    };
    let server = Server::start(limits).await;
    wait_past_limit(server.send("").await).await;
    wait_past_limit(server.send("GET /hello HTTP/1.1\r\nhost: he").await).await;
    let mut later = server.send("GET /hello HTTP/1.1\r\nhost: here\r\n\r\n").await;
    read_until_text(&mut later, "hello").await;
    later.write_all(b"GET /hel").await.unwrap();
    wait_past_limit(later).await;
}

#[tokio::test]
async fn idle_connection_outlives_head_limit() {
    let limits = ListenerLimits {
        head: NEVER / 8,
        idle: NEVER / 2,
        ..ListenerLimits::default()
    };
    let server = Server::start(limits).await;
    let mut stream = server.send("GET /hello HTTP/1.1\r\nhost: here\r\n\r\n").await;
    read_until_text(&mut stream, "hello").await;
    tokio::time::pause();
    tokio::time::advance(limits.head * 2).await;
    tokio::time::resume();
    stream
        .write_all(b"GET /hello HTTP/1.1\r\nhost: here\r\n\r\n")
        .await
        .unwrap();
    read_until_text(&mut stream, "hello").await;
    // The idle limit is the next timer, so it passes at once.
    tokio::time::pause();
    wait_until_closed(stream).await;
}

#[tokio::test]
async fn silent_connections_keep_no_peer_out() {
    let limits = ListenerLimits {
        connections: 16,
        per_address: 8,
        head: NEVER,
        ..ListenerLimits::default()
    };
    let server = Server::start(limits).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.send("POST /read HTTP/1.1\r\nhost").await);
        silent.push(
            server
                .send("POST /read HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n")
                .await,
        );
        assert!(server.hello().await.starts_with("HTTP/1.1 200"));
    }
    // The oldest connections were closed, not merely left in the backlog.
    wait_until_closed(silent.remove(0)).await;
}

#[tokio::test]
async fn unread_response_closes_connection() {
    let limits = ListenerLimits {
        connections: 1,
        stalled: SOON,
        ..ListenerLimits::default()
    };
    let server = Server::start(limits).await;
    let _unread = server.send("GET /large HTTP/1.1\r\nhost: here\r\n\r\n").await;
    // The only place is taken until the server gives up the response.
    let served = async {
        loop {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let _ = stream
                .write_all(b"GET /hello HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
                .await;
            let mut answer = String::new();
            if stream.read_to_string(&mut answer).await.is_ok() && answer.contains("200 OK") {
                return;
            }
            tokio::time::sleep(SOON / 10).await;
        }
    };
    tokio::time::timeout(NEVER, served)
        .await
        .expect("the place stays taken");
}

#[tokio::test]
async fn large_body_is_refused_unread() {
    let server = Server::start(ListenerLimits::default()).await;
    let mut small = server
        .send("POST /read HTTP/1.1\r\nhost: here\r\ncontent-length: 3\r\n\r\nabc")
        .await;
    assert!(
        read_until_text(&mut small, "\r\n\r\n3")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let mut large = server
        .send("POST /read HTTP/1.1\r\nhost: here\r\ncontent-length: 1048577\r\n\r\n")
        .await;
    assert!(
        read_until_text(&mut large, "too large")
            .await
            .starts_with("HTTP/1.1 413")
    );
}

#[tokio::test]
async fn stopping_server_answers_during_lame_duck() {
    let limits = ListenerLimits {
        lame_duck: NEVER / 2,
        ..ListenerLimits::default()
    };
    let mut server = Server::start(limits).await;
    let mut kept = server.send("GET /hello HTTP/1.1\r\nhost: here\r\n\r\n").await;
    assert!(
        !read_until_text(&mut kept, "hello")
            .await
            .contains("connection: close")
    );
    server.shutdown.cancel();
    kept.write_all(b"GET /hello HTTP/1.1\r\nhost: here\r\n\r\n")
        .await
        .unwrap();
    assert!(
        read_until_text(&mut kept, "hello")
            .await
            .contains("connection: close")
    );
    assert!(server.hello().await.starts_with("HTTP/1.1 200"));
    // The lame-duck period is the next timer, so it passes at once.
    tokio::time::pause();
    tokio::time::timeout(NEVER, &mut server.serving)
        .await
        .unwrap()
        .unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn running_request_ends_before_server() {
    let mut server = Server::start(ListenerLimits::default()).await;
    let mut stream = server
        .send("POST /read HTTP/1.1\r\nhost: here\r\ncontent-length: 3\r\n\r\na")
        .await;
    assert!(server.hello().await.starts_with("HTTP/1.1 200"));
    server.finish_request(&mut stream, b"bc").await;
}

/// Files of the git gate, and a client that trusts their authority.
fn write_tls_files(folder: &std::path::Path) -> (tls::Settings, tls::TlsClient) {
    let (authority, _) = certs::CertificateAuthority::generate(crate::read_wall_clock(), 1).unwrap();
    let leaf = certs::list_service_subjects("journeyman", &[]).remove(2);
    let issued = authority.issue(&leaf, crate::read_wall_clock(), 1).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    let settings = tls::Settings {
        cert: write("tls.crt", &issued.certificate),
        key: write("tls.key", &issued.key),
        ca: write("ca.crt", authority.pem()),
    };
    let client = tls::TlsClient::by_name(&settings, tls::TlsProtocol::Http1).unwrap();
    (settings, client)
}

async fn start_secured_server(folder: &std::path::Path, limits: ListenerLimits) -> (Server, tls::TlsClient) {
    let (settings, client) = write_tls_files(folder);
    let secure = ListenerTls {
        server: tls::TlsServer::for_everybody(&settings, tls::TlsProtocol::Http1).unwrap(),
        plain: Router::new().route("/healthz", get(|| async { "ok" })),
    };
    (Server::start_over(Some(secure), limits).await, client)
}

#[tokio::test]
async fn plain_connection_to_tls_gets_health_only() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = start_secured_server(folder.path(), ListenerLimits::default()).await;
    let stream = client.connect("reporter", server.send("").await).await;
    let mut stream = stream.unwrap();
    for _ in 0..2 {
        stream
            .write_all(b"GET /hello HTTP/1.1\r\nhost: here\r\n\r\n")
            .await
            .unwrap();
        assert!(
            read_until_text(&mut stream, "hello")
                .await
                .starts_with("HTTP/1.1 200")
        );
    }
    let mut plain = server.send("GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n").await;
    assert!(
        read_until_text(&mut plain, "ok")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let mut plain = server.send("GET /hello HTTP/1.1\r\nhost: here\r\n\r\n").await;
    assert!(
        read_until_text(&mut plain, "\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 404")
    );
}

#[tokio::test]
async fn unfinished_handshake_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ListenerLimits {
        head: SOON,
        ..ListenerLimits::default()
    };
    let (server, _) = start_secured_server(folder.path(), limits).await;
    wait_until_closed(server.send("").await).await;
    wait_until_closed(server.send("\u{16}\u{3}\u{1}").await).await;
}

#[tokio::test]
async fn stopping_tls_listener_finishes_running_request() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, client) = start_secured_server(folder.path(), ListenerLimits::default()).await;
    let stream = client.connect("reporter", server.send("").await).await;
    let mut stream = stream.unwrap();
    let head = "POST /read HTTP/1.1\r\nhost: here\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server has begun to read the request.
    read_until_text(&mut stream, "100 Continue").await;
    server.finish_request(&mut stream, b"abc").await;
}
