//! Tests of callers of an executor with a certificate.

use std::net::SocketAddr;

use bootstrap::tls::{Settings, TlsClient, TlsProtocol};
use certs::{CertificateAuthority, list_service_subjects};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;

use super::*;

/// Certificate, key and authority of a service.
struct Files(TempDir);

impl Files {
    fn of(authority: &CertificateAuthority, service: &str) -> Self {
        let files = Self(TempDir::new().unwrap());
        files.renew(authority, service);
        files
    }

    fn renew(&self, authority: &CertificateAuthority, service: &str) {
        let leaves = list_service_subjects("journeyman", &[]);
        let leaf = leaves.iter().find(|leaf| leaf.service == service).unwrap();
        let issued = authority.issue(leaf, bootstrap::read_wall_clock(), 1).unwrap();
        for (name, text) in issued.files(authority) {
            std::fs::write(self.0.path().join(name), text).unwrap();
        }
    }

    fn settings(&self) -> Settings {
        let at = |name: &str| self.0.path().join(name);
        Settings {
            cert: at("tls.crt"),
            key: at("tls.key"),
            ca: at("ca.crt"),
        }
    }

    /// Returns a client that calls as this service.
    fn client(&self, address: SocketAddr) -> ExecutorServiceClient<Channel> {
        let client = TlsClient::to_service(&self.settings(), TlsProtocol::Http2, "executor").unwrap();
        let connector = tower::service_fn(move |_: hyper::Uri| {
            let client = client.clone();
            async move {
                let stream = TcpStream::connect(address).await?;
                let stream = client.connect("127.0.0.1", stream).await?;
                Ok::<_, std::io::Error>(TokioIo::new(stream))
            }
        });
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        ExecutorServiceClient::new(endpoint.connect_with_connector_lazy(connector))
    }
}

fn generate_authority() -> CertificateAuthority {
    CertificateAuthority::generate(bootstrap::read_wall_clock(), 1)
        .unwrap()
        .0
}

/// An executor with a certificate.
struct Secured {
    address: SocketAddr,
    token: String,
    _folder: TempDir,
    _guard: DropGuard,
}

impl Secured {
    async fn start(files: &Files) -> Self {
        let folder = TempDir::new().unwrap();
        let pair = grant::generate_key_pair();
        let signer = GrantSigner::new(&pair.id, &pair.private_key).unwrap();
        let token = signer.sign_status(bootstrap::read_wall_clock()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = build_config(folder.path(), address, pair);
        config.tls = Some(files.settings());
        let stop = CancellationToken::new();
        tokio::spawn(bootstrap::serve_app::<executor::ExecutorApp>(
            config,
            listener,
            stop.clone(),
        ));
        Self {
            address,
            token: token.expose_secret().to_owned(),
            _folder: folder,
            _guard: stop.drop_guard(),
        }
    }

    /// Calls as a client with a grant. Returns the number of tools or the refusal.
    async fn ask(&self, client: &mut ExecutorServiceClient<Channel>) -> Result<usize, Status> {
        let request = add_bearer_token(&self.token, ListToolsRequest {});
        Ok(client.list_tools(request).await?.into_inner().tools.len())
    }
}

#[tokio::test]
async fn certified_executor_answers_planners_only() {
    let authority = generate_authority();
    let files = Files::of(&authority, "executor");
    let executor = Secured::start(&files).await;
    let mut planner = Files::of(&authority, "planner").client(executor.address);
    assert!(executor.ask(&mut planner).await.unwrap() > 3);
    for other in [
        Files::of(&authority, "reporter"),
        Files::of(&self::generate_authority(), "planner"),
    ] {
        let refused = executor.ask(&mut other.client(executor.address)).await;
        assert!(refused.is_err(), "the grant alone does not help");
    }
    let plain = Endpoint::from_shared(format!("http://{}", executor.address)).unwrap();
    let refused = executor
        .ask(&mut ExecutorServiceClient::new(plain.connect_lazy()))
        .await;
    assert!(refused.is_err());
    assert!(
        executor.ask(&mut planner).await.is_ok(),
        "the others cost it nothing"
    );
}

#[tokio::test]
async fn renewed_certificate_keeps_planner_connection() {
    let authority = generate_authority();
    let (files, planner) = (
        Files::of(&authority, "executor"),
        Files::of(&authority, "planner"),
    );
    let executor = Secured::start(&files).await;
    let mut before = planner.client(executor.address);
    executor.ask(&mut before).await.unwrap();
    // A different authority, so that a new connection shows which files are in use.
    let next = self::generate_authority();
    files.renew(&next, "executor");
    assert!(executor.ask(&mut planner.client(executor.address)).await.is_err());
    planner.renew(&next, "planner");
    executor.ask(&mut planner.client(executor.address)).await.unwrap();
    executor.ask(&mut before).await.unwrap();
}
