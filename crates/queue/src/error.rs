//! What can go wrong with the queue, by what the caller can do about it.

use std::time::Duration;

use domain::{Cause, RecordKind, Undecodable};

/// Why an operation on the queue failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached or did not answer in time; worth trying again.
    #[error("nats is unavailable: {doing}")]
    Unavailable {
        /// What was tried.
        doing: String,
        /// What happened.
        source: Cause,
    },
    /// A record is not what it should be.
    #[error("{what} is not readable: {problem}")]
    Corrupt {
        /// Which record: stream or bucket, and its place there.
        what: String,
        /// What is wrong with it, without its content.
        problem: String,
    },
    /// A newer release wrote a record: nothing is wrong with it, and a process of that release reads it.
    #[error("{what} has format {format}, which is newer than this release reads")]
    Newer {
        /// Which record: stream or bucket, and its place there.
        what: String,
        /// What it is.
        kind: RecordKind,
        /// Its format.
        format: u32,
    },
    /// The server is too old or a stream differs from what is wanted.
    #[error("{problem}")]
    Topology {
        /// What is wrong, and where.
        problem: String,
        /// What the server or the disk said.
        source: Option<Cause>,
    },
    /// The servers' file store has no room for it; it has again once an operator adds or frees some.
    #[error(
        "nats has no room for {what}: its file store is full; an operator purges tickets or raises the limits"
    )]
    Full {
        /// The refused message or object.
        what: String,
    },
    /// Somebody else wrote first (compare-and-set lost, or taken over).
    #[error("somebody else wrote first")]
    Conflict,
}

impl Error {
    /// How long a record of a newer release is left alone before it is tried again.
    pub const LEFT_FOR: Duration = Duration::from_secs(10);

    /// [`Error::Unavailable`], with the error or the words that say why.
    pub fn unavailable(doing: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self::Unavailable {
            doing: doing.into(),
            source: source.into(),
        }
    }

    /// True when the same may work in a moment: the server does not answer, or its store is full.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Full { .. })
    }

    pub(crate) fn full(what: impl Into<String>) -> Self {
        Self::Full { what: what.into() }
    }

    pub(crate) fn topology(problem: impl Into<String>, source: Option<Cause>) -> Self {
        Self::Topology {
            problem: problem.into(),
            source,
        }
    }

    pub(crate) fn undecodable(what: String, kind: RecordKind, problem: Undecodable) -> Self {
        match problem {
            Undecodable::Newer { version, .. } => Self::Newer {
                what,
                kind,
                format: version,
            },
            Undecodable::Broken(problem) => Self::Corrupt { what, problem },
        }
    }

    pub(crate) fn corrupt(what: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what: what.into(),
            problem: problem.to_string(),
        }
    }
}
