//! TLS to a real server, with certificates of the kind that `journeyman certs` creates.

use std::path::{Path, PathBuf};

use bootstrap::read_wall_clock;
use certs::{CertificateAuthority, list_service_subjects};
use queue::{Queue, Settings};
use servers::{NatsOptions, NatsServer, TlsFiles};
use tempfile::TempDir;

use crate::world::{LIMIT, await_soon};

const DAYS: u32 = 10;

/// Files of one service and of an authority.
struct Files(TempDir);

impl Files {
    fn of(authority: &CertificateAuthority, service: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.renew(authority, service);
        files
    }

    fn renew(&self, authority: &CertificateAuthority, service: &str) {
        let leaves = list_service_subjects("journeyman", &["127.0.0.1".to_owned()]);
        let leaf = leaves.iter().find(|leaf| leaf.service == service).unwrap();
        let issued = authority.issue(leaf, read_wall_clock(), DAYS).unwrap();
        for (name, text) in issued.files(authority) {
            std::fs::write(self.at(name), text).unwrap();
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts a server that requests client certificates if `clients` is set.
    async fn serve(&self, clients: Option<&Path>) -> NatsServer {
        let tls = TlsFiles {
            certificate: self.at("tls.crt"),
            key: self.at("tls.key"),
            clients: clients.map(Path::to_owned),
        };
        let options = NatsOptions {
            tls: Some(tls),
            ..NatsOptions::default()
        };
        NatsServer::start_with(options).await.unwrap()
    }
}

fn generate_authority() -> CertificateAuthority {
    CertificateAuthority::generate(read_wall_clock(), DAYS).unwrap().0
}

/// Settings that trust the server by this authority.
fn build_tls_settings(server: &NatsServer, authorities: &Files) -> Settings {
    Settings {
        url: server.url(),
        ca: Some(authorities.at("ca.crt")),
        ..Settings::default()
    }
}

#[tokio::test]
async fn nats_server_is_trusted_by_its_authority() {
    let (ours, theirs) = (generate_authority(), generate_authority());
    let (nats, strangers) = (Files::of(&ours, "nats"), Files::of(&theirs, "nats"));
    let server = nats.serve(None).await;
    let queue = Queue::connect(&build_tls_settings(&server, &nats), "test")
        .await
        .unwrap();
    queue.ping().await.unwrap();
    assert!(
        Queue::connect(&build_tls_settings(&server, &strangers), "test")
            .await
            .is_err()
    );
    let of_the_system = Settings {
        url: server.url(),
        ..Settings::default()
    };
    assert!(Queue::connect(&of_the_system, "test").await.is_err());
}

#[tokio::test]
async fn authority_setting_refuses_server_without_tls() {
    let nats = Files::of(&generate_authority(), "nats");
    let server = NatsServer::start().await.unwrap();
    let refused = Queue::connect(&build_tls_settings(&server, &nats), "test").await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn client_certificate_is_shown_on_request() {
    let authority = generate_authority();
    let (nats, planner) = (Files::of(&authority, "nats"), Files::of(&authority, "planner"));
    let server = nats.serve(Some(&nats.at("ca.crt"))).await;
    let without = build_tls_settings(&server, &nats);
    assert!(Queue::connect(&without, "test").await.is_err());
    let with = Settings {
        cert: Some(planner.at("tls.crt")),
        key: Some(planner.at("tls.key")),
        ..without.clone()
    };
    Queue::connect(&with, "test").await.unwrap().ping().await.unwrap();
    let half = Settings { key: None, ..with };
    let problem = Queue::connect(&half, "test").await.err().unwrap().to_string();
    assert!(problem.contains("nats.cert and nats.key"), "{problem}");
}

#[tokio::test]
async fn reconnect_uses_new_certificates_and_authority() {
    let nats = Files::of(&generate_authority(), "nats");
    let mut server = nats.serve(None).await;
    let queue = Queue::connect(&build_tls_settings(&server, &nats), "test")
        .await
        .unwrap();
    queue.ping().await.unwrap();
    nats.renew(&generate_authority(), "nats");
    server.restart().await.unwrap();
    let back = async { while queue.ping().await.is_err() {} };
    tokio::time::timeout(LIMIT, await_soon(back)).await.unwrap();
}
