//! TLS trust anchors for the git gate and the egress proxy.

use std::path::PathBuf;

use bootstrap::{
    settings::Error,
    tls::{Settings, TlsClient, TlsProtocol},
};

/// Trust in peers; empty for plain connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerTls {
    /// TLS client for the egress proxy.
    pub(crate) client: Option<TlsClient>,
    /// File of the authority for git, which reads it at each start.
    pub(crate) authority: Option<PathBuf>,
}

impl PeerTls {
    /// Loads the trust anchors from the settings.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub(crate) fn new(settings: Option<&Settings>) -> Result<Self, Error> {
        let Some(settings) = settings else {
            return Ok(Self::default());
        };
        let authority = std::path::absolute(&settings.ca);
        Ok(Self {
            client: Some(TlsClient::by_name(settings, TlsProtocol::Http1)?),
            authority: Some(authority.map_err(|error| Error::new("tls.ca", error.to_string()))?),
        })
    }
}
