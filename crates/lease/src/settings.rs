//! Section `[redis]` of the settings.

use std::{fmt, path::PathBuf};

use secrecy::SecretString;
use serde::Deserialize;

/// Settings of the Redis connection: section `[redis]`.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Server address `redis://host:port`, or `rediss://` with TLS.
    pub url: String,
    /// PEM file with the only trusted authorities for the server's certificate; absent: those of the system.
    pub ca: Option<PathBuf>,
    /// Name of the user, for servers with users.
    pub username: Option<String>,
    /// Password of the user.
    pub password: Option<SecretString>,
    /// Time to live of a lease in milliseconds; renewed three times as often. At least 300, and less than
    /// `nats.ack_wait_ms`.
    ///
    /// So a suspended process has lost its lease before its token is redelivered.
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
    /// Address of the server without user and password, for logs, errors and display.
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
