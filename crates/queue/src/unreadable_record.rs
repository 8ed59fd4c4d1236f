//! Records that cannot be read, and the revisions of table values.

use crate::error::Error;
use bytes::Bytes;
use domain::{RecordError, RecordKind};

/// Revision of a value in a table: its stream sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableRevision(pub u64);

/// Record that cannot be read, with its place and raw bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) kind: RecordKind,
    pub(crate) problem: RecordError,
    pub(crate) bytes: Bytes,
}

impl UnreadableRecord {
    /// Place of the record and the reason why it is unreadable, for operators.
    pub fn problem(&self) -> String {
        format!(
            "{} at {} is not readable: {}",
            self.stream, self.sequence, self.problem
        )
    }

    /// True when a newer release wrote the record. It must be left to a process of that release.
    pub fn is_newer(&self) -> bool {
        matches!(self.problem, RecordError::Newer { .. })
    }

    /// Returns the record if it is broken, so that the caller may move it to the dead letters or overwrite
    /// it.
    ///
    /// # Errors
    /// [`Error::Newer`] when a newer release wrote it; it must be left alone.
    pub fn unless_newer(self) -> Result<Self, Error> {
        if self.is_newer() {
            Err(self.into())
        } else {
            Ok(self)
        }
    }

    /// Stream sequence of the record.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Raw bytes of the record. When its body object is lost, the payload of its message.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Revision to overwrite, for a record of a table.
    pub fn revision(&self) -> TableRevision {
        TableRevision(self.sequence)
    }
}

impl From<UnreadableRecord> for Error {
    fn from(unreadable: UnreadableRecord) -> Self {
        let UnreadableRecord {
            stream,
            sequence,
            kind,
            problem,
            ..
        } = unreadable;
        Self::undecodable(format!("{stream} at {sequence}"), kind, problem)
    }
}

/// Content of a key in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundValue<V> {
    /// Readable value and its revision.
    Value(V, TableRevision),
    /// Value that is not of the expected type or format.
    Unreadable(UnreadableRecord),
}

impl<V> FoundValue<V> {
    /// Revision to overwrite, for readable and unreadable values.
    pub fn revision(&self) -> TableRevision {
        match self {
            Self::Value(_, revision) => *revision,
            Self::Unreadable(unreadable) => unreadable.revision(),
        }
    }
}
