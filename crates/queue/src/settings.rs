//! Section `[nats]` of the settings.

use std::{fmt, path::PathBuf};

use secrecy::SecretString;
use serde::Deserialize;

/// Settings of the NATS connection and topology: section `[nats]`.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Server address `nats://host:port` or `tls://host:port`; several are separated by commas.
    pub url: String,
    /// PEM file with the only trusted authorities for the servers' certificates; absent: those of the system.
    /// With it, every connection uses TLS.
    pub ca: Option<PathBuf>,
    /// PEM file of the client certificate, for servers that request one.
    pub cert: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    pub key: Option<PathBuf>,
    /// Replicas of streams and buckets: 1, or 3 in a cluster.
    pub replicas: usize,
    /// Milliseconds without progress of its holder after which a message is redelivered; at least 1000, the
    /// same for all services.
    ///
    /// Holders report progress four times as often. Recovery after a crash takes about this long.
    pub ack_wait_ms: u64,
    /// Days for which dead letters are kept; 0: for ever. After a reduction, the next start deletes the older
    /// ones.
    pub dead_letter_days: u32,
    /// Limit of all dead letters in MiB; the oldest are deleted when it is reached. 0: no limit.
    pub dead_letter_mib: u32,
    /// Limit of all streams together at each server, in MiB: at most 90 % of the servers' `max_file_store`.
    /// 0: no limit.
    ///
    /// When it becomes scarce, objects are refused first, then requests, journals and webhooks. The
    /// reporter's setting counts.
    pub store_mib: u32,
    /// Seed of the service's nkey, for servers that know its public key.
    pub nkey_seed: Option<SecretString>,
    /// NATS credentials file, for servers that require one.
    pub credentials_file: Option<PathBuf>,
    /// Newest format of records that this process reads. Not a setting: tests of rollouts lower it, so that
    /// this release behaves like an older one.
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
    /// Addresses of the servers without user and password, for logs, errors and display.
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = self.urls().map(without_user).collect();
        addresses.join(", ")
    }

    /// True when connections use TLS whatever the servers offer.
    pub(crate) fn is_secure(&self) -> bool {
        self.ca.is_some() || self.urls().any(|url| url.starts_with("tls://"))
    }

    /// URL of each server, with user and password.
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
    fn displayed_settings_hide_all_secrets() {
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
