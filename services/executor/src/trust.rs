//! What the git gate and the egress proxy are known by.

use std::path::PathBuf;

use bootstrap::{
    settings::Error,
    tls::{Client, Protocol, Settings},
};

/// Nothing, where connections are plain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// For the egress proxy.
    pub(crate) client: Option<Client>,
    /// For git, which reads the file itself, at each start.
    pub(crate) authority: Option<PathBuf>,
}

impl Trust {
    /// # Errors
    /// When the files cannot be used.
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
