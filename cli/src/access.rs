//! Where the API is and with which token, for commands that are its clients.

use std::path::Path;

use anyhow::{Context, bail};
use api::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::args;

/// Where `journeyman up` leaves its address and token, below its data folder.
const ACCESS_FILE: &str = "api.json";

/// The address and token of a running `journeyman up`, readable by its user only.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Access {
    /// Base URL.
    pub url: String,
    /// The token.
    pub token: String,
}

impl Access {
    /// That of a client.
    pub(crate) fn of(client: &Client) -> Self {
        Self {
            url: client.url().to_owned(),
            token: client.token().expose_secret().to_owned(),
        }
    }

    /// Leaves the file for other commands of the same user.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn save(&self, data: &Path) -> anyhow::Result<()> {
        use std::{io::Write, os::unix::fs::OpenOptionsExt};
        let path = data.join(ACCESS_FILE);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(&serde_json::to_vec(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Takes the file away again.
    pub(crate) fn forget(data: &Path) {
        let _ = std::fs::remove_file(data.join(ACCESS_FILE));
    }
}

/// A client from the arguments, the environment, or the `journeyman up` of the folder `.journeyman`.
///
/// # Errors
/// When address or token are in none of these places.
pub(crate) fn client(arguments: &args::Api) -> anyhow::Result<Client> {
    let local = local();
    let from_file = arguments
        .token_file
        .as_ref()
        .map(std::fs::read_to_string)
        .transpose()?;
    let from_environment = std::env::vars()
        .find(|(name, _)| name == "JOURNEYMAN_TOKEN")
        .map(|(_, token)| token);
    let url = arguments
        .url
        .clone()
        .or_else(|| local.as_ref().map(|access| access.url.clone()));
    let token = from_file
        .or(from_environment)
        .or_else(|| local.map(|access| access.token));
    let (Some(url), Some(token)) = (url, token) else {
        bail!(
            "no API: start `journeyman up` here, or give --api URL and --token-file FILE (or JOURNEYMAN_TOKEN)"
        );
    };
    Ok(Client::new(&url, SecretString::from(token.trim().to_owned()))?)
}

/// The address of the `journeyman up` of the folder `.journeyman`.
pub(crate) fn local_url() -> Option<String> {
    local().map(|access| access.url)
}

fn local() -> Option<Access> {
    let bytes = std::fs::read(Path::new(".journeyman").join(ACCESS_FILE)).ok()?;
    serde_json::from_slice(&bytes).ok()
}
