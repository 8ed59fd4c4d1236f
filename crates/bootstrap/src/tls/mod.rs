//! TLS between the services: who proves what with which certificate, and how a new one is taken up.
//!
//! Three files make the section `[tls]`. They are read again at each handshake, so that whoever replaces them (Kubernetes,
//! `journeyman certs renew`) needs no restart: new connections use the new ones, open ones go on to their end. Files that do
//! not fit together change nothing, and one line of the log says so.

mod client;
mod identity;
mod material;
mod reload;
mod server;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::Deserialize;

pub use self::{client::Client, server::Server};

/// `[tls]` of the settings: PEM files. Without the section, connections are plain, as on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The service's certificate, followed by those between it and the authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities whose certificates are accepted, and no others.
    pub ca: PathBuf,
}

/// A connection that was taken.
pub type Accepted<S> = tokio_rustls::server::TlsStream<S>;

/// What is spoken inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, as gRPC needs it.
    Http2,
}

impl Protocol {
    /// As it is told in a handshake.
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
        }
    }
}
