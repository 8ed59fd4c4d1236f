//! A proxy on loopback, hosts behind names that the test chooses, and clients that behave like a sandbox.

mod registry;

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use bootstrap::settings::TextList;
use bytes::Bytes;
use domain::{RunFence, RunId, TicketKey, Timestamp};
use egress::{Config, HostResolver, LookUp, MirrorSettings, Settings, TimeLimits};
use grant::{Grant, GrantAudience, GrantSigner};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, client::conn::http1, header, upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, ClientConnection, RootCertStore, pki_types::ServerName};
use secrecy::ExposeSecret;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use registry::{CREDENTIAL, Registry};

pub const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Resolver that answers from a table, one answer after the other. The last answer is repeated.
#[derive(Default)]
pub struct Names {
    answers: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    pub asked: AtomicUsize,
}

impl Names {
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl HostResolver for Names {
    fn look_up(&self, host: &str) -> LookUp {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let found = answers.get_mut(host).map(|answers| {
            if answers.len() > 1 {
                answers.remove(0)
            } else {
                answers[0].clone()
            }
        });
        Box::pin(std::future::ready(
            found.ok_or_else(|| io::ErrorKind::NotFound.into()),
        ))
    }
}

pub struct Rig {
    signer: GrantSigner,
    pub names: Arc<Names>,
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub server: tokio::task::JoinHandle<anyhow::Result<()>>,
    _guard: DropGuard,
}

/// Differences from a proxy that permits loopback and has no mirror.
pub struct Plan {
    pub settings: Settings,
    proxy: webproxy::Settings,
    pub limits: TimeLimits,
    names: BTreeMap<String, Vec<Vec<IpAddr>>>,
}

impl Default for Plan {
    fn default() -> Self {
        let settings = Settings {
            private_networks: TextList(vec!["127.0.0.0/8".to_owned()]),
            upload_mib: 1,
            download_mib: 1,
            ..Settings::default()
        };
        Self {
            settings,
            proxy: webproxy::Settings::default(),
            limits: TimeLimits::default(),
            names: [("open.example".to_owned(), vec![vec![LOOPBACK]])].into(),
        }
    }
}

impl Plan {
    /// Sets the answers for a name, in turn.
    pub fn name(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let read = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        let answers = answers.iter().map(read).collect();
        self.names.insert(name.to_owned(), answers);
        self
    }

    /// Puts the hosts behind a proxy of the company.
    pub fn behind(mut self, proxy: webproxy::Settings) -> Self {
        self.proxy = proxy;
        self
    }

    pub fn mirror(mut self, name: &str, mirror: MirrorSettings) -> Self {
        self.settings.mirrors.insert(name.to_owned(), mirror);
        self
    }

    /// Permits public addresses only.
    pub fn strict(mut self) -> Self {
        self.settings.private_networks = TextList::default();
        self
    }

    pub fn limits(mut self, change: impl FnOnce(&mut TimeLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub async fn start(mut self) -> Rig {
        let key = grant::generate_key_pair();
        self.settings
            .grant_keys
            .insert(key.id.clone(), key.public_key.clone());
        let names = Arc::new(Names {
            answers: Mutex::new(self.names),
            asked: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = Config {
            telemetry: bootstrap::telemetry::Settings::default(),
            tls: None,
            proxy: self.proxy,
            egress: self.settings,
        };
        bootstrap::ServiceConfig::check(&config).unwrap();
        let stop = CancellationToken::new();
        let resolver: Arc<dyn HostResolver> = names.clone();
        let app = egress::EgressApp::build_with(&config, resolver, self.limits).unwrap();
        let serving = bootstrap::ServiceApp::run(app, listener, stop.clone());
        Rig {
            signer: GrantSigner::new(&key.id, &key.private_key).unwrap(),
            names,
            address,
            server: tokio::spawn(serving),
            _guard: stop.clone().drop_guard(),
            stop,
        }
    }
}

pub fn build_grant(network: &[&str]) -> Grant {
    Grant {
        audience: GrantAudience::Egress,
        run: RunId::new(TicketKey::jira("ENG-1").unwrap(), 7),
        repository: "acme/shop".parse().unwrap(),
        workspace: None,
        fence: RunFence::default(),
        network: network.iter().map(|text| text.parse().unwrap()).collect(),
    }
}

impl Rig {
    pub fn token(&self, grant: &Grant, at: Timestamp) -> String {
        self.signer.sign(grant, at).unwrap().expose_secret().to_owned()
    }

    /// Sends one request outside of a session.
    pub async fn ask(&self, path: &str, headers: &[(header::HeaderName, &str)]) -> (StatusCode, String) {
        let mut client = Client::over(TcpStream::connect(self.address).await.unwrap()).await;
        let mut request = Request::get(path).header(header::HOST, "proxy");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        client.text(request.body(Body::empty()).unwrap()).await
    }

    /// Requests a session and returns the response.
    pub async fn open(&self, token: &str) -> Response<Incoming> {
        let mut client = Client::over(TcpStream::connect(self.address).await.unwrap()).await;
        let request = Request::get("/session")
            .header(header::HOST, "proxy")
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "journeyman-egress")
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        client.send(request.body(Body::empty()).unwrap()).await
    }

    /// Opens a session and returns its connection.
    pub async fn session(&self, grant: &Grant) -> TokioIo<Upgraded> {
        let answer = self.open(&self.token(grant, bootstrap::read_wall_clock())).await;
        assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(answer.headers()[header::UPGRADE], "journeyman-egress");
        TokioIo::new(hyper::upgrade::on(answer).await.unwrap())
    }

    /// Opens a session and returns a client inside of it.
    pub async fn client(&self, grant: &Grant) -> Client {
        Client::over(self.session(grant).await).await
    }

    /// Opens a tunnel to an echo host, past its `ClientHello`.
    pub async fn tunnel(&self, grant: &Grant, target: &str) -> TokioIo<Upgraded> {
        let mut tunnel = self.connect(grant, target).await.unwrap();
        let hello = build_client_hello("open.example");
        tunnel.write_all(&hello).await.unwrap();
        tunnel.read_exact(&mut vec![0; hello.len()]).await.unwrap();
        tunnel
    }

    /// Requests a tunnel.
    pub async fn connect(
        &self,
        grant: &Grant,
        target: &str,
    ) -> Result<TokioIo<Upgraded>, (StatusCode, String)> {
        let mut client = self.client(grant).await;
        let request = Request::builder().method(Method::CONNECT).uri(target);
        let answer = client.send(request.body(Body::empty()).unwrap()).await;
        if answer.status() == StatusCode::OK {
            Ok(TokioIo::new(hyper::upgrade::on(answer).await.unwrap()))
        } else {
            Err((answer.status(), read_response_text(answer).await.unwrap()))
        }
    }

    /// Requests a tunnel and expects a refusal.
    pub async fn refusal(&self, grant: &Grant, target: &str) -> String {
        let (status, text) = self.connect(grant, target).await.map(drop).unwrap_err();
        assert_eq!(status, StatusCode::FORBIDDEN, "{target}: {text}");
        assert!(
            text.starts_with("egress: ") && text.ends_with('\n') && text.lines().count() == 1,
            "{text:?}"
        );
        text
    }

    pub async fn refusals(&self, grant: &Grant) -> String {
        let bearer = format!("Bearer {}", self.token(grant, bootstrap::read_wall_clock()));
        let (status, text) = self.ask("/refusals", &[(header::AUTHORIZATION, &bearer)]).await;
        assert_eq!(status, StatusCode::OK);
        text
    }
}

/// HTTP/1 client on one connection.
pub struct Client(http1::SendRequest<Body>);

impl Client {
    pub async fn over(
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        Self(sender)
    }

    pub async fn send(&mut self, request: Request<Body>) -> Response<Incoming> {
        self.0.ready().await.unwrap();
        self.0.send_request(request).await.unwrap()
    }

    pub async fn text(&mut self, request: Request<Body>) -> (StatusCode, String) {
        let answer = self.send(request).await;
        (answer.status(), read_response_text(answer).await.unwrap())
    }

    /// Sends a `GET` of the URI as written, with the proxy's Host header.
    pub async fn get(&mut self, uri: &str) -> Response<Incoming> {
        let request = Request::get(uri).header(header::HOST, "bridge:8080");
        self.send(request.body(Body::empty()).unwrap()).await
    }
}

/// Reads the whole body, unless it ends early.
pub async fn read_response_text(answer: Response<Incoming>) -> Result<String, axum::Error> {
    let body = axum::body::to_bytes(Body::new(answer.into_body()), usize::MAX).await?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

/// Returns the first bytes of a TLS client for a host.
pub fn build_client_hello(host: &str) -> Vec<u8> {
    bootstrap::install_tls_provider();
    let config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let host = ServerName::try_from(host.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), host).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// Host that echoes and records its input.
pub struct Echo {
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
    visits: Arc<AtomicUsize>,
}

impl Echo {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let echo = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            visits: Arc::default(),
        };
        let (heard, visits) = (echo.heard.clone(), echo.visits.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                visits.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(give_back(stream, heard.clone()));
            }
        });
        echo
    }

    pub fn target(&self) -> String {
        format!("open.example:{}", self.address.port())
    }

    pub fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }

    pub fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

async fn give_back(mut stream: TcpStream, heard: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        heard.lock().unwrap().extend_from_slice(&chunk[..count]);
        if stream.write_all(&chunk[..count]).await.is_err() {
            return;
        }
    }
}

/// Reads until the stream ends, with or without an error.
pub async fn read_remaining_bytes(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Bytes {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes));
    // The end counts, not its reason.
    let _ = reading.await.unwrap();
    bytes.into()
}

/// Reads until the proxy ends the stream at its next time limit, which passes at once. No other byte may be on its way.
pub async fn read_to_limit(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Bytes {
    tokio::time::pause();
    let bytes = read_remaining_bytes(stream).await;
    tokio::time::resume();
    bytes
}

/// Longer than any step on the slowest machine, shorter than the proxy's idle limit.
const PATIENCE: Duration = Duration::from_secs(45);

/// Time limit for [`read_to_limit`]: longer than a machine stands still before, shorter than the wait of a read.
pub const LATER: Duration = Duration::from_secs(30);

/// Short enough for a test, and long enough for a slow machine to run another step first.
pub const SOON: Duration = Duration::from_secs(2);
