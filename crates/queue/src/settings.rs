//! The `[nats]` section of the settings.

use std::path::PathBuf;

use serde::Deserialize;

/// `[nats]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `nats://host:port`, several separated by commas.
    pub url: String,
    /// Replicas of streams and buckets: 1, or 3 in a cluster.
    pub replicas: usize,
    /// After this long without a sign of life of its holder a message goes to somebody else; progress is reported four
    /// times as often. Recovery after a crash takes about this long. At least 1000; the same for all services.
    pub ack_wait_ms: u64,
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
            replicas: 1,
            ack_wait_ms: 8_000,
            credentials_file: None,
            newest_format: u32::MAX,
        }
    }
}
