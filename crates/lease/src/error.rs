//! Errors of requests to Redis, and outages, logged once each.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::{ErrorCause, cause::format_error_chain};

/// Reason why a request to Redis failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not a Redis address.
    #[error("redis.url is not a redis address such as redis://127.0.0.1:6379")]
    Address,
    /// The authorities cannot be used, or the address does not use TLS.
    #[error("redis.ca, which needs a redis.url that begins with rediss://: {file} cannot be used")]
    Authorities {
        /// Path of the authorities' file.
        file: String,
        /// Underlying error.
        source: ErrorCause,
    },
    /// The server cannot be reached or did not answer in time. A retry may succeed.
    #[error("redis at {address} is unavailable")]
    Unavailable {
        /// Host and port of the server.
        address: String,
        /// Underlying error.
        source: ErrorCause,
    },
}

/// Tracks answers and failures, and logs each transition between them.
pub(crate) struct RedisOutage {
    lasts: AtomicBool,
    /// Consequence of the outage, for the log.
    means: &'static str,
}

impl RedisOutage {
    pub(crate) const fn new(means: &'static str) -> Self {
        Self {
            lasts: AtomicBool::new(false),
            means,
        }
    }

    pub(crate) fn failed(&self, error: &Error) {
        if !self.lasts.swap(true, Ordering::AcqRel) {
            let means = self.means;
            tracing::warn!(error = %format_error_chain(error), "{means}, until redis answers again");
        }
    }

    pub(crate) fn answered(&self) {
        if self.lasts.swap(false, Ordering::AcqRel) {
            tracing::info!("redis answers again");
        }
    }
}
