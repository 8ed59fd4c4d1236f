//! Errors of requests to Redis.

use domain::ErrorCause;

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
