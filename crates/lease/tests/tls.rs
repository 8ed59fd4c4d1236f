//! TLS to a real server, with the certificates that the command makes.

use std::path::PathBuf;

use bootstrap::read_wall_clock;
use certs::{CertificateAuthority, list_service_subjects};
use servers::{RedisOptions, RedisServer, TlsFiles};
use tempfile::TempDir;

use super::LIMIT;
use crate::{Error, RedisUser, Settings, TicketLeases};

const DAYS: u32 = 10;
/// SHA-256 of `secret`.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

fn generate_authority() -> CertificateAuthority {
    // A process installs its cryptography provider once; the services do so at their start.
    let _ = rustls::crypto::ring::default_provider().install_default();
    CertificateAuthority::generate(read_wall_clock(), DAYS).unwrap().0
}

/// Files of the server.
struct Files(TempDir);

impl Files {
    fn of(authority: &CertificateAuthority) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.renew(authority);
        files
    }

    fn renew(&self, authority: &CertificateAuthority) {
        let leaves = list_service_subjects("journeyman", &["127.0.0.1".to_owned()]);
        let leaf = leaves.iter().find(|leaf| leaf.service == "redis").unwrap();
        let issued = authority.issue(leaf, read_wall_clock(), DAYS).unwrap();
        for (name, text) in issued.files(authority) {
            std::fs::write(self.at(name), text).unwrap();
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    async fn serve(&self) -> RedisServer {
        let tls = TlsFiles {
            certificate: self.at("tls.crt"),
            key: self.at("tls.key"),
            clients: None,
        };
        let options = RedisOptions {
            acl: Some(crate::render_acl([(RedisUser::Planner, SECRET)])),
            tls: Some(tls),
            ..RedisOptions::default()
        };
        RedisServer::start_with(options).await.unwrap()
    }

    /// Settings of the planner that trusts the server by these authorities.
    fn settings(&self, server: &RedisServer) -> Settings {
        Settings {
            url: server.url(),
            ca: Some(self.at("ca.crt")),
            username: Some("planner".to_owned()),
            password: Some("secret".into()),
            ..Settings::default()
        }
    }
}

#[tokio::test]
async fn redis_server_is_trusted_by_its_authority() {
    let redis = Files::of(&generate_authority());
    let server = redis.serve().await;
    let settings = redis.settings(&server);
    assert!(settings.url.starts_with("rediss://"));
    TicketLeases::connect(&settings).await.unwrap();
    let stranger = Files::of(&generate_authority());
    for ca in [Some(stranger.at("ca.crt")), None] {
        let other = Settings {
            ca,
            ..settings.clone()
        };
        let refused = TicketLeases::connect(&other).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })));
    }
    crate::SharedLimits::open(&settings)
        .unwrap()
        .ping()
        .await
        .unwrap();
}

#[tokio::test]
async fn unusable_authority_is_named_at_start() {
    let redis = Files::of(&generate_authority());
    let server = redis.serve().await;
    let settings = redis.settings(&server);
    let plain = settings.url.replace("rediss://", "redis://");
    for wrong in [
        Settings {
            ca: Some(redis.at("nowhere")),
            ..settings.clone()
        },
        Settings {
            url: plain,
            ..settings.clone()
        },
    ] {
        let refused = TicketLeases::connect(&wrong).await.err().unwrap();
        assert!(matches!(refused, Error::Authorities { .. }), "{refused}");
        assert!(refused.to_string().contains("redis.ca"), "{refused}");
    }
}

#[tokio::test]
async fn new_authority_applies_without_restart() {
    let redis = Files::of(&generate_authority());
    let mut server = redis.serve().await;
    let leases = TicketLeases::connect(&redis.settings(&server)).await.unwrap();
    redis.renew(&generate_authority());
    server.restart().await.unwrap();
    let back = async { while leases.ping().await.is_err() {} };
    tokio::time::timeout(LIMIT, back).await.unwrap();
}
