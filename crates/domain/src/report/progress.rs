//! Progress of a run, as people see it during the work.

use serde::{Deserialize, Serialize};

use super::request::RequestProperties;
use crate::{Dollars, Job, RunPhase};

/// Progress of a run at the time of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgress {
    /// The kind of work.
    pub job: Job,
    /// Phase of the last conversation with the model; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// Progress of the first clone of the repository in percent; absent unless the run waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_percent: Option<u8>,
    /// Cost of the run; absent when the price of a model is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
}

/// Request to update the progress in the status comment. It writes no other text, and the run does not wait
/// for it.
// No decision depends on the progress, so neither a replay nor a crash needs the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressUpdate {}

impl RequestProperties for ProgressUpdate {
    fn summary(&self) -> String {
        "show how far the run is".to_owned()
    }
}
