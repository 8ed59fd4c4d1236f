//! TLS between all internal parts: NATS, Redis and the services, with certificates of `journeyman certs
//! init`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use journeyman::credentials::ServiceCredentials;
use testkit::{NatsOptions, NatsServer, RedisServer, TlsFiles};

use crate::processes::find_binary;

/// Services with a certificate.
const SERVICES: [&str; 4] = ["planner", "executor", "reporter", "egress"];

/// NATS and Redis with TLS, and the folder of certificates.
pub(crate) struct InternalTls {
    folder: PathBuf,
    nats: NatsServer,
    redis: RedisServer,
}

impl InternalTls {
    /// Creates the certificates and starts the servers.
    ///
    /// # Errors
    /// When a program is missing or cannot start.
    pub(crate) async fn start(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder.join("certs");
        run_certs(&["init", "--host", "127.0.0.1"], &folder)?;
        let files = |service: &str| TlsFiles {
            certificate: folder.join(service).join("tls.crt"),
            key: folder.join(service).join("tls.key"),
            clients: None,
        };
        let nats = NatsServer::start_with(NatsOptions {
            tls: Some(files("nats")),
            ..NatsOptions::default()
        });
        let redis = RedisServer::start_with(testkit::RedisOptions {
            tls: Some(files("redis")),
            ..testkit::RedisOptions::default()
        });
        let (nats, redis) = (nats.await?, redis.await?);
        Ok(Self { folder, nats, redis })
    }

    /// Settings with the addresses of the servers and the authority.
    pub(crate) fn environment(&self) -> [(String, String); 4] {
        let ca = self.folder.join("ca.crt").display().to_string();
        [
            ("NATS__URL", self.nats.url()),
            ("NATS__CA", ca.clone()),
            ("REDIS__URL", self.redis.url()),
            ("REDIS__CA", ca),
        ]
        .map(|(key, value)| (format!("JOURNEYMAN__{key}"), value))
    }

    /// Gives each service its certificate and changes the URLs between services to `https`.
    pub(crate) fn secure(&self, environment: &mut [(String, String)], credentials: &mut ServiceCredentials) {
        let urls = [
            "PLANNER__POOLS__DEFAULT",
            "PLANNER__GATE_URL",
            "PLANNER__EGRESS_URL",
        ];
        for (key, value) in environment {
            if urls
                .iter()
                .any(|url| key.strip_prefix("JOURNEYMAN__") == Some(*url))
            {
                *value = value.replace("http://", "https://");
            }
        }
        for service in SERVICES {
            let own = self.folder.join(service);
            for (key, file) in [("CERT", "tls.crt"), ("KEY", "tls.key"), ("CA", "ca.crt")] {
                let path = own.join(file).display().to_string();
                credentials.add(service, &format!("TLS__{key}"), path);
            }
        }
    }

    /// Renews every certificate in place.
    ///
    /// # Errors
    /// When the command fails.
    pub(crate) fn renew(&self) -> anyhow::Result<()> {
        run_certs(&["renew"], &self.folder)
    }
}

fn run_certs(arguments: &[&str], folder: &Path) -> anyhow::Result<()> {
    let output = Command::new(find_binary("journeyman")?)
        .arg("certs")
        .args(arguments)
        .arg(folder)
        .output()
        .context("journeyman certs")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
