//! The `[redis]` section of the settings.

use std::{fmt, path::PathBuf};

use secrecy::SecretString;
use serde::Deserialize;

/// `[redis]` of the settings.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `redis://host:port`, or `rediss://` with TLS.
    pub url: String,
    /// The file (PEM) of the authorities that the server's certificate is of, and no others; absent: those of the system.
    pub ca: Option<PathBuf>,
    /// The user, when the server has users.
    pub username: Option<String>,
    /// The user's password.
    pub password: Option<SecretString>,
    /// How long a lease lasts without renewal; it is renewed three times as often. At least 300, and less than
    /// `nats.ack_wait_ms`: a process that was stopped has then lost its lease before its token goes to another.
    pub ttl_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: "redis://127.0.0.1:6379".into(),
            ca: None,
            username: None,
            password: None,
            ttl_ms: 6_000,
        }
    }
}

impl Settings {
    /// The server's address, without the user and password that a URL may hold: for logs, errors and people.
    pub fn address(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("redis", &self.url));
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{host}")
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("url", &self.address())
            .field("ca", &self.ca)
            .field("username", &self.username)
            .field("password", &self.password)
            .field("ttl_ms", &self.ttl_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_shown_a_password() {
        let settings = Settings {
            url: "redis://me:hunter2@redis:6379".into(),
            password: Some("hunter2".into()),
            ..Settings::default()
        };
        assert_eq!(settings.address(), "redis://redis:6379");
        let shown = format!("{settings:?}");
        assert!(
            !shown.contains("hunter2") && shown.contains("redis:6379"),
            "{shown}"
        );
    }
}
