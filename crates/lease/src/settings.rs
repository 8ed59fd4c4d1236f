//! The `[redis]` section of the settings.

use serde::Deserialize;

/// `[redis]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `redis://host:port`, or `rediss://` with TLS.
    pub url: String,
    /// How long a lease lasts without renewal; it is renewed three times as often. At least 300, and less than
    /// `nats.ack_wait_ms`: a process that was stopped has then lost its lease before its token goes to another.
    pub ttl_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: "redis://127.0.0.1:6379".into(),
            ttl_ms: 6_000,
        }
    }
}
