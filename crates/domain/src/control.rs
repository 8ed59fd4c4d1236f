//! Control records: what an operator switches for everybody.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The switch that stops every planner; while the record is there, no ticket is worked on and nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAll {
    /// Who switched it on.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

impl StopAll {
    /// The record's key in the control table.
    pub const KEY: &str = "stop-all";
}
