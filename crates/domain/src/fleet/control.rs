//! Control records: switches that operators set for all processes, and observations of processes for
//! operators.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{ticket::TicketKey, time::Timestamp},
    journal::{kind::RecordKind, record_format::StoredRecord},
};

/// The switch that stops every planner. While the record exists, planners work on no ticket and lose nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAll {
    /// The user who switched it on.
    pub by: String,
    /// Time of the switch.
    pub at: Timestamp,
}

impl StoredRecord for StopAll {
    const KIND: RecordKind = RecordKind::Control;
}

impl StopAll {
    /// The record's key in the control table.
    pub const KEY: &str = "stop-all";
}

/// Observation that an older release skipped a record of a newer release. One control record per kind; it
/// holds the last observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewerRecord {
    /// The kind of the skipped record.
    pub kind: RecordKind,
    /// The format number of the skipped record.
    pub format: u32,
    /// Its ticket, if it belongs to one.
    pub ticket: Option<TicketKey>,
    /// Time of the last observation, to within a minute.
    pub at: Timestamp,
}

impl StoredRecord for NewerRecord {
    const KIND: RecordKind = RecordKind::Control;
}

impl NewerRecord {
    /// The key in the control table.
    pub fn key(kind: RecordKind) -> String {
        format!("newer:{kind}")
    }
}

/// Position up to which the projection has read the journals into the records of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectionPosition {
    /// Stream sequence of the first entry that is not yet read.
    pub next: u64,
}

impl ProjectionPosition {
    /// The key among the control records.
    pub const KEY: &str = "projection:runs";
}

impl StoredRecord for ProjectionPosition {
    const KIND: RecordKind = RecordKind::Control;
}
