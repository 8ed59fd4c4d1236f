//! TLS between the services: identities, certificates and their renewal.
//!
//! Section `[tls]` names three files. They are read again at each handshake, so a replacement (by Kubernetes
//! or `journeyman certs renew`) needs no restart. New connections use the new files, and open ones continue.
//! Files that do not fit together are not used, which one log line reports.

mod client;
mod identity;
mod material;
mod reload;
mod server;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::Deserialize;

pub use self::{client::TlsClient, server::TlsServer};

/// Section `[tls]` of the settings: PEM files. Without the section, connections are plain, as on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Certificate of the service, followed by the intermediate certificates.
    pub cert: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Only accepted authorities.
    pub ca: PathBuf,
}

/// Application protocol inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProtocol {
    /// Protocol HTTP/1.1.
    Http1,
    /// Protocol HTTP/2, for gRPC.
    Http2,
}

impl TlsProtocol {
    /// Names for ALPN.
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
        }
    }
}
