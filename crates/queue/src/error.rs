//! Errors of the queue, by the caller's possible reaction.

use std::time::Duration;

use domain::{ErrorCause, RecordError, RecordKind};

/// Reason why an operation on the queue failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached or did not answer in time. A retry may succeed.
    #[error("nats is unavailable: {doing}")]
    Unavailable {
        /// Operation that was attempted.
        doing: String,
        /// Underlying error.
        source: ErrorCause,
    },
    /// A record has an unexpected type, format or content.
    #[error("{what} is not readable: {problem}")]
    Corrupt {
        /// Stream or bucket of the record, and its place there.
        what: String,
        /// Description of the damage, without the record's content.
        problem: String,
    },
    /// A newer release wrote the record. It is intact, and a process of that release reads it.
    #[error("{what} has format {format}, which is newer than this release reads")]
    Newer {
        /// Stream or bucket of the record, and its place there.
        what: String,
        /// Kind of the record.
        kind: RecordKind,
        /// Format of the record.
        format: u32,
    },
    /// The server is too old, or a stream differs from the wanted one.
    #[error("{problem}")]
    Topology {
        /// Problem and its place.
        problem: String,
        /// Error of the server or the disk.
        source: Option<ErrorCause>,
    },
    /// The servers' file store has no room. It has again once an operator adds or frees some.
    #[error(
        "nats has no room for {what}: its file store is full; an operator purges tickets or raises the limits"
    )]
    Full {
        /// Refused message or object.
        what: String,
    },
    /// Another writer was first: a compare-and-set failed, or another process took over.
    #[error("somebody else wrote first")]
    Conflict,
}

impl Error {
    /// Time for which a record of a newer release is left alone before the next attempt.
    pub const LEFT_FOR: Duration = Duration::from_secs(10);

    /// Makes an [`Error::Unavailable`] from the operation and its error or text.
    pub fn unavailable(doing: impl Into<String>, source: impl Into<ErrorCause>) -> Self {
        Self::Unavailable {
            doing: doing.into(),
            source: source.into(),
        }
    }

    /// True when the same call may succeed soon: the server does not answer, or its store is full.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Full { .. })
    }

    /// True when a retry cannot help: a stream differs from the topology, or a record is damaged.
    pub const fn is_fatal(&self) -> bool {
        !self.is_passing()
    }

    pub(crate) fn full(what: impl Into<String>) -> Self {
        Self::Full { what: what.into() }
    }

    pub(crate) fn topology(problem: impl Into<String>, source: Option<ErrorCause>) -> Self {
        Self::Topology {
            problem: problem.into(),
            source,
        }
    }

    pub(crate) fn undecodable(what: String, kind: RecordKind, problem: RecordError) -> Self {
        match problem {
            RecordError::Newer { version, .. } => Self::Newer {
                what,
                kind,
                format: version,
            },
            RecordError::Broken(problem) => Self::Corrupt { what, problem },
        }
    }

    pub(crate) fn corrupt(what: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what: what.into(),
            problem: problem.to_string(),
        }
    }
}
