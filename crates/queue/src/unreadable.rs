//! Records that are not what they should be.

use crate::error::Error;
use bytes::Bytes;
use domain::{RecordKind, Undecodable};

/// The revision a value was read at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A record that cannot be read, with what there is of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) kind: RecordKind,
    pub(crate) problem: Undecodable,
    pub(crate) bytes: Bytes,
}

impl Unreadable {
    /// Where it stands, and what is wrong with it.
    pub fn problem(&self) -> String {
        format!(
            "{} at {} is not readable: {}",
            self.stream, self.sequence, self.problem
        )
    }

    /// Whether a newer release wrote it: it is to be left to a process of that release.
    pub fn is_newer(&self) -> bool {
        matches!(self.problem, Undecodable::Newer { .. })
    }

    /// Itself, when it is broken and may be set aside or written over.
    ///
    /// # Errors
    /// [`Error::Newer`] when a newer release wrote it: then it must be left alone.
    pub fn unless_newer(self) -> Result<Self, Error> {
        if self.is_newer() {
            Err(self.into())
        } else {
            Ok(self)
        }
    }

    /// Its place in the stream.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The record as it was found; at most what its message carried when its body is lost.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// In a table: the revision to write over.
    pub fn revision(&self) -> Revision {
        Revision(self.sequence)
    }
}

impl From<Unreadable> for Error {
    fn from(unreadable: Unreadable) -> Self {
        let Unreadable {
            stream,
            sequence,
            kind,
            problem,
            ..
        } = unreadable;
        Self::undecodable(format!("{stream} at {sequence}"), kind, problem)
    }
}

/// What a key of a table holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<V> {
    /// A value, and the revision it was read at.
    Value(V, Revision),
    /// Something else.
    Unreadable(Unreadable),
}

impl<V> Found<V> {
    /// The revision to write over, whatever stands there.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Value(_, revision) => *revision,
            Self::Unreadable(unreadable) => unreadable.revision(),
        }
    }
}
