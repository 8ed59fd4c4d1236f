//! The `[nats]` section of the settings.

use std::{fmt, path::PathBuf};

use secrecy::SecretString;
use serde::Deserialize;

/// `[nats]` of the settings.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `nats://host:port`, or `tls://host:port`; several separated by commas.
    pub url: String,
    /// The file (PEM) of the authorities that the servers' certificates are of, and no others; absent: those of the system.
    /// With it, nothing is sent without TLS.
    pub ca: Option<PathBuf>,
    /// A certificate to show, when the servers ask for one.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// Replicas of streams and buckets: 1, or 3 in a cluster.
    pub replicas: usize,
    /// After this long without a sign of life of its holder a message goes to somebody else; progress is reported four
    /// times as often. Recovery after a crash takes about this long. At least 1000; the same for all services.
    pub ack_wait_ms: u64,
    /// Days that dead letters are kept; 0: for ever. A smaller number than before forgets the older ones at the next
    /// start.
    pub dead_letter_days: u32,
    /// MiB of dead letters; when it is used up, the oldest go. 0: no limit.
    pub dead_letter_mib: u32,
    /// MiB that all streams together may take at each server: at most 90 % of the servers' `max_file_store`. When it becomes
    /// scarce, objects are refused first, then requests, journals and webhooks. The reporter sets it; 0: no limit.
    pub store_mib: u32,
    /// The seed of the service's nkey, when the server knows its public key.
    pub nkey_seed: Option<SecretString>,
    /// A NATS credentials file, when the server asks for one.
    pub credentials_file: Option<PathBuf>,
    /// Records of a newer format than this are taken for a newer release's. Not a setting: tests of rollouts lower it, so that
    /// this release behaves as an older one.
    #[serde(skip)]
    pub newest_format: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".into(),
            ca: None,
            cert: None,
            key: None,
            replicas: 1,
            ack_wait_ms: 8_000,
            dead_letter_days: 90,
            dead_letter_mib: 0,
            store_mib: 4096,
            nkey_seed: None,
            credentials_file: None,
            newest_format: u32::MAX,
        }
    }
}

impl Settings {
    /// The servers' addresses, without the user and password that a URL may hold: for logs, errors and people.
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = self.urls().map(without_user).collect();
        addresses.join(", ")
    }

    /// Whether connections have TLS whatever the servers say.
    pub(crate) fn is_secure(&self) -> bool {
        self.ca.is_some() || self.urls().any(|url| url.starts_with("tls://"))
    }

    /// Each server's URL as it is.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        self.url.split(',').map(str::trim)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("url", &self.addresses())
            .field("ca", &self.ca)
            .field("cert", &self.cert)
            .field("key", &self.key)
            .field("replicas", &self.replicas)
            .field("ack_wait_ms", &self.ack_wait_ms)
            .field("dead_letter_days", &self.dead_letter_days)
            .field("dead_letter_mib", &self.dead_letter_mib)
            .field("store_mib", &self.store_mib)
            .field("nkey_seed", &self.nkey_seed)
            .field("credentials_file", &self.credentials_file)
            .finish()
    }
}

fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_shown_a_user_a_password_or_a_seed() {
        let settings = Settings {
            url: "nats://me:hunter2@nats-0:4222, nats-1:4222".into(),
            nkey_seed: Some("SUAHUNTER2".into()),
            ..Settings::default()
        };
        assert_eq!(settings.addresses(), "nats://nats-0:4222, nats://nats-1:4222");
        let shown = format!("{settings:?}").to_lowercase();
        assert!(
            !shown.contains("hunter2") && shown.contains("nats-0:4222"),
            "{shown}"
        );
    }
}
