//! Why Redis could not be asked.

use domain::Cause;

/// Why Redis could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not one.
    #[error("redis.url is not a redis address such as redis://127.0.0.1:6379")]
    Address,
    /// The authorities cannot be used, or the address is not one with TLS.
    #[error("redis.ca, which needs a redis.url that begins with rediss://: {file} cannot be used")]
    Authorities {
        /// The file.
        file: String,
        /// What is wrong.
        source: Cause,
    },
    /// The server cannot be reached or did not answer in time; worth trying again.
    #[error("redis at {address} is unavailable")]
    Unavailable {
        /// Host and port.
        address: String,
        /// What happened.
        source: Cause,
    },
}
