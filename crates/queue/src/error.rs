//! What can go wrong with the queue, by what the caller can do about it.

/// Why an operation on the queue failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached or did not answer in time; worth trying again.
    #[error("nats is unavailable: {0}")]
    Unavailable(String),
    /// A record is not what it should be.
    #[error("{what} is not readable: {problem}")]
    Corrupt {
        /// Which record: stream or bucket, and its place there.
        what: String,
        /// What is wrong with it, without its content.
        problem: String,
    },
    /// The server is too old or a stream differs from what is wanted.
    #[error("{0}")]
    Topology(String),
    /// Somebody else wrote first (compare-and-set lost, or taken over).
    #[error("somebody else wrote first")]
    Conflict,
}

impl Error {
    pub(crate) fn unavailable(doing: &str, error: impl std::fmt::Display) -> Self {
        Self::Unavailable(format!("{doing}: {error}"))
    }

    pub(crate) fn corrupt(what: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what: what.into(),
            problem: problem.to_string(),
        }
    }
}
