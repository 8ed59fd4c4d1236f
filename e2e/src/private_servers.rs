//! External connections behind certificates of an authority that only `SSL_CERT_FILE` names.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::Context;
use testkit::{
    JiraOptions, NatsOptions, NatsServer, RedisServer, ScriptStep, TlsFiles,
    tls::{ServedFront, TestAuthority, TlsFront},
};

use crate::StandInVendors;

/// NATS and Redis with TLS, and the file with the authority's certificate.
pub(crate) struct PrivateServers {
    authority_file: PathBuf,
    nats: NatsServer,
    redis_url: String,
    _redis: (RedisServer, ServedFront),
}

impl PrivateServers {
    /// Starts the servers, and the stand-ins behind TLS.
    ///
    /// # Errors
    /// When a server cannot start.
    pub(crate) async fn start(
        folder: &Path,
        jira: JiraOptions,
        script: Vec<ScriptStep>,
    ) -> anyhow::Result<(Self, StandInVendors)> {
        let authority = TestAuthority::new()?;
        let authority_file = folder.join("authority.pem");
        std::fs::write(&authority_file, authority.pem())?;
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let vendors = StandInVendors::start_private(&authority, [free; 3], jira, script).await?;
        let nats = NatsServer::start_with(NatsOptions {
            tls: Some(certificate_files(&authority, folder)?),
            ..NatsOptions::default()
        });
        let redis = RedisServer::start().await?;
        let behind = redis
            .url()
            .trim_start_matches("redis://")
            .parse()
            .context("redis")?;
        let front = TlsFront::bind(&authority, free).await?;
        let private = Self {
            authority_file,
            nats: nats.await?,
            redis_url: format!("rediss://{}", front.address()),
            _redis: (redis, front.serve(behind)),
        };
        Ok((private, vendors))
    }

    /// Settings with the addresses, and the variable that names the authority.
    pub(crate) fn environment(&self) -> [(String, String); 3] {
        [
            ("JOURNEYMAN__NATS__URL".to_owned(), self.nats.url()),
            ("JOURNEYMAN__REDIS__URL".to_owned(), self.redis_url.clone()),
            (
                "SSL_CERT_FILE".to_owned(),
                self.authority_file.display().to_string(),
            ),
        ]
    }
}

fn certificate_files(authority: &TestAuthority, folder: &Path) -> anyhow::Result<TlsFiles> {
    let issued = authority.issue("127.0.0.1")?;
    let files = TlsFiles {
        certificate: folder.join("nats.pem"),
        key: folder.join("nats.key"),
        clients: None,
    };
    std::fs::write(&files.certificate, issued.certificate)?;
    std::fs::write(&files.key, issued.key)?;
    Ok(files)
}
