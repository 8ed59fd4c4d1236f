use std::{io, path::Path};

use certs::{CertificateAuthority, list_service_subjects};
use domain::Timestamp;
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::{client, server};

use super::*;

/// Service with its three files.
struct Side {
    folder: TempDir,
    service: &'static str,
}

impl Side {
    fn of(authority: &CertificateAuthority, service: &'static str) -> Self {
        let side = Self {
            folder: tempfile::tempdir().unwrap(),
            service,
        };
        side.renew(authority);
        side
    }

    fn settings(&self) -> Settings {
        let at = |name: &str| self.folder.path().join(name);
        Settings {
            cert: at("tls.crt"),
            key: at("tls.key"),
            ca: at("ca.crt"),
        }
    }

    fn renew(&self, authority: &CertificateAuthority) {
        let leaves = list_service_subjects("journeyman", &[]);
        let leaf = leaves.iter().find(|leaf| leaf.service == self.service).unwrap();
        let issued = authority.issue(leaf, crate::read_wall_clock(), 1).unwrap();
        self.write(&issued.certificate, &issued.key, authority.pem());
    }

    fn write(&self, cert: &str, key: &str, ca: &str) {
        let settings = self.settings();
        for (path, text) in [(settings.cert, cert), (settings.key, key), (settings.ca, ca)] {
            std::fs::write(path, text).unwrap();
        }
    }

    /// Server as executors create it.
    fn for_planners(&self) -> TlsServer {
        TlsServer::for_service(&self.settings(), TlsProtocol::Http2, "planner").unwrap()
    }

    /// Client as planners create it.
    fn to_executors(&self) -> TlsClient {
        TlsClient::to_service(&self.settings(), TlsProtocol::Http2, "executor").unwrap()
    }
}

fn generate_authority() -> CertificateAuthority {
    authority_of(crate::read_wall_clock())
}

/// Authority with a name that follows from the time.
fn authority_of(now: Timestamp) -> CertificateAuthority {
    CertificateAuthority::generate(now, 10).unwrap().0
}

type Pair = (client::TlsStream<DuplexStream>, server::TlsStream<DuplexStream>);

/// Connects both ends; returns the error of the server first.
async fn connect_pair(server: &TlsServer, client: &TlsClient, host: &str) -> io::Result<Pair> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (connected, accepted) = tokio::join!(client.connect(host, near), server.accept(far));
    // A client completes the handshake before the server has verified its certificate.
    let accepted = accepted?;
    Ok((connected?, accepted))
}

async fn expect_refusal(server: &TlsServer, client: &TlsClient) -> String {
    connect_pair(server, client, "10.0.0.7")
        .await
        .err()
        .unwrap()
        .to_string()
}

/// Checks that both ends can still exchange bytes.
async fn exchange_bytes((client, server): &mut Pair) {
    let mut received = [0; 4];
    client.write_all(b"ping").await.unwrap();
    client.flush().await.unwrap();
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"ping");
}

fn read_peer_certificate((client, _): &Pair) -> CertificateDer<'static> {
    client.get_ref().1.peer_certificates().unwrap()[0].clone()
}

#[tokio::test]
async fn executor_accepts_planner_with_certificate() {
    let authority = generate_authority();
    let (executor, planner) = (Side::of(&authority, "executor"), Side::of(&authority, "planner"));
    // The address is in no certificate; the service's identity counts.
    let pair = connect_pair(&executor.for_planners(), &planner.to_executors(), "10.0.0.7").await;
    exchange_bytes(&mut pair.unwrap()).await;
}

#[tokio::test]
async fn executor_refuses_client_without_certificate() {
    let authority = generate_authority();
    let (executor, planner) = (Side::of(&authority, "executor"), Side::of(&authority, "planner"));
    let silent = TlsClient::by_name(&planner.settings(), TlsProtocol::Http2).unwrap();
    let refused = connect_pair(&executor.for_planners(), &silent, "executor").await;
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("sent no certificates"), "{refused}");
}

#[tokio::test]
async fn executor_refuses_planner_of_other_authority() {
    let (ours, theirs) = (generate_authority(), generate_authority());
    let executor = Side::of(&ours, "executor");
    let stranger = Side::of(&theirs, "planner");
    // It trusts our authority, so that it reaches the step of showing its certificate.
    let leaf = list_service_subjects("journeyman", &[]).remove(0);
    let issued = theirs.issue(&leaf, crate::read_wall_clock(), 1).unwrap();
    let stranger_client = {
        let both = format!("{}{}", ours.pem(), theirs.pem());
        stranger.write(&issued.certificate, &issued.key, &both);
        stranger.to_executors()
    };
    let refused = expect_refusal(&executor.for_planners(), &stranger_client).await;
    // `BadSignature` occurs when both authorities have the same name, because they were made at the same
    // moment.
    let words = ["UnknownIssuer", "BadSignature"];
    assert!(words.iter().any(|words| refused.contains(words)), "{refused}");
}

#[tokio::test]
async fn executor_refuses_other_service_as_caller() {
    let authority = generate_authority();
    let executor = Side::of(&authority, "executor");
    for other in ["reporter", "egress", "executor"] {
        let other = Side::of(&authority, other);
        let refused = expect_refusal(&executor.for_planners(), &other.to_executors()).await;
        assert!(
            refused.contains("not the one of spiffe://journeyman/planner"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn planner_refuses_other_service_as_executor() {
    let authority = generate_authority();
    let planner = Side::of(&authority, "planner");
    let posing = Side::of(&authority, "egress");
    let server = TlsServer::for_everybody(&posing.settings(), TlsProtocol::Http2).unwrap();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let client = planner.to_executors();
    let (connected, _) = tokio::join!(client.connect("10.0.0.7", near), server.accept(far));
    let refused = connected.err().unwrap().to_string();
    assert!(
        refused.contains("not the one of spiffe://journeyman/executor"),
        "{refused}"
    );
}

#[tokio::test]
async fn client_by_name_requires_name_in_certificate() {
    let authority = generate_authority();
    let (gate, executor) = (Side::of(&authority, "reporter"), Side::of(&authority, "executor"));
    let server = TlsServer::for_everybody(&gate.settings(), TlsProtocol::Http1).unwrap();
    let client = TlsClient::by_name(&executor.settings(), TlsProtocol::Http1).unwrap();
    exchange_bytes(&mut connect_pair(&server, &client, "reporter").await.unwrap()).await;
    exchange_bytes(
        &mut connect_pair(&server, &client, "reporter.journeyman.svc")
            .await
            .unwrap(),
    )
    .await;
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (connected, _) = tokio::join!(client.connect("egress", near), server.accept(far));
    assert!(connected.is_err());
}

#[tokio::test]
async fn new_certificate_applies_to_new_connections() {
    let authority = generate_authority();
    let (executor, planner) = (Side::of(&authority, "executor"), Side::of(&authority, "planner"));
    let (server, client) = (executor.for_planners(), planner.to_executors());
    let mut old = connect_pair(&server, &client, "executor").await.unwrap();
    executor.renew(&authority);
    planner.renew(&authority);
    let mut new = connect_pair(&server, &client, "executor").await.unwrap();
    assert_ne!(read_peer_certificate(&old), read_peer_certificate(&new));
    exchange_bytes(&mut old).await;
    exchange_bytes(&mut new).await;
    // The whole authority is replaced: the previous peers are no longer trusted.
    let next = self::generate_authority();
    executor.renew(&next);
    assert!(connect_pair(&server, &client, "executor").await.is_err());
    exchange_bytes(&mut old).await;
    planner.renew(&next);
    exchange_bytes(&mut connect_pair(&server, &client, "executor").await.unwrap()).await;
}

#[tokio::test]
async fn unusable_new_certificate_keeps_previous_one() {
    let authority = generate_authority();
    let (executor, planner) = (Side::of(&authority, "executor"), Side::of(&authority, "planner"));
    let (server, client) = (executor.for_planners(), planner.to_executors());
    let before = read_peer_certificate(&connect_pair(&server, &client, "executor").await.unwrap());
    let leaf = list_service_subjects("journeyman", &[]).remove(1);
    let issued = |days_ago: i64| {
        let then = crate::read_wall_clock().plus_ms(-days_ago * 24 * 60 * 60 * 1000);
        authority.issue(&leaf, then, 1).unwrap()
    };
    let (fresh, other, expired) = (issued(0), issued(0), issued(3));
    for (cert, key) in [
        (&fresh.certificate, &other.key),
        (&expired.certificate, &expired.key),
        (&"half of a certifi".to_owned(), &fresh.key),
        (&fresh.certificate, &String::new()),
    ] {
        executor.write(cert, key, authority.pem());
        let pair = connect_pair(&server, &client, "executor").await.unwrap();
        assert_eq!(read_peer_certificate(&pair), before);
    }
    executor.write(&fresh.certificate, &fresh.key, authority.pem());
    let pair = connect_pair(&server, &client, "executor").await.unwrap();
    assert_ne!(
        read_peer_certificate(&pair),
        before,
        "it is taken up as soon as it is whole"
    );
    std::fs::remove_file(executor.settings().key).unwrap();
    exchange_bytes(&mut connect_pair(&server, &client, "executor").await.unwrap()).await;
}

#[test]
fn mismatched_files_at_start_name_wrong_one() {
    let now = crate::read_wall_clock();
    let authority = authority_of(now);
    let side = Side::of(&authority, "reporter");
    let settings = side.settings();
    let problem = || {
        TlsServer::for_everybody(&settings, TlsProtocol::Http1)
            .err()
            .unwrap()
    };
    let good = |path: &Path| std::fs::read_to_string(path).unwrap();
    let (cert, key) = (good(&settings.cert), good(&settings.key));
    let (other, namesake) = (authority_of(now.plus_ms(-1)), authority_of(now));
    for (cert, key, ca, named, said) in [
        ("", key.as_str(), authority.pem(), "tls.cert", "no certificate"),
        (cert.as_str(), "", authority.pem(), "tls.key", "no private key"),
        (cert.as_str(), key.as_str(), "", "tls.ca", "no certificate"),
        (
            cert.as_str(),
            key.as_str(),
            other.pem(),
            "tls.cert",
            "not of an authority",
        ),
        (
            cert.as_str(),
            key.as_str(),
            namesake.pem(),
            "tls.cert",
            "not of an authority",
        ),
    ] {
        side.write(cert, key, ca);
        let problem = problem();
        assert_eq!(problem.key, named);
        assert!(problem.problem.contains(said), "{problem}");
    }
    std::fs::remove_file(&settings.ca).unwrap();
    assert_eq!(problem().key, "tls.ca");
}
