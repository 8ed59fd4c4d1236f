//! Control records: what an operator switches for everybody, and what an operator has to know of all processes.

use serde::{Deserialize, Serialize};

use crate::{RecordKind, Stored, TicketKey, Timestamp};

/// The switch that stops every planner; while the record is there, no ticket is worked on and nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAll {
    /// Who switched it on.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

impl Stored for StopAll {
    const KIND: RecordKind = RecordKind::Control;
}

impl StopAll {
    /// The record's key in the control table.
    pub const KEY: &str = "stop-all";
}

/// A record of a newer release was met by a process of an older one, which left it alone. One for each kind of record: the
/// last that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewerRecord {
    /// What the record is.
    pub kind: RecordKind,
    /// Its format.
    pub format: u32,
    /// Its ticket, when it belongs to one.
    pub ticket: Option<TicketKey>,
    /// When it was met last, to within a minute.
    pub at: Timestamp,
}

impl Stored for NewerRecord {
    const KIND: RecordKind = RecordKind::Control;
}

impl NewerRecord {
    /// The key in the control table.
    pub fn key(kind: RecordKind) -> String {
        format!("newer:{kind}")
    }
}

/// How far the journals are taken into the records of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Stream sequence of the first entry that is not.
    pub next: u64,
}

impl Place {
    /// Its name among the control records.
    pub const KEY: &str = "projection:runs";
}

impl Stored for Place {
    const KIND: RecordKind = RecordKind::Control;
}
