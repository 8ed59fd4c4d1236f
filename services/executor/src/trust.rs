//! TLS trust anchors for the git gate and the egress proxy.

use std::path::PathBuf;

use bootstrap::{
    settings::Error,
    tls::{Client, Protocol, Settings},
};

/// Trust in peers; empty for plain connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// TLS client for the egress proxy.
    pub(crate) client: Option<Client>,
    /// File of the authority for git, which reads it at each start.
    pub(crate) authority: Option<PathBuf>,
}

impl Trust {
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
            client: Some(Client::by_name(settings, Protocol::Http1)?),
            authority: Some(authority.map_err(|error| Error::new("tls.ca", error.to_string()))?),
        })
    }
}
