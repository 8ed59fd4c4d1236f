//! How far a run is: what people see of it while it works.

use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::{Dollars, Job, Phase};

/// How far a run is when it asks for a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The kind of work.
    pub job: Job,
    /// What the model was asked for last; absent before it was asked for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How far the first clone of the repository is, of a hundred; absent unless the run waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_percent: Option<u8>,
    /// What the run has spent; absent where the price of a model is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
}

/// Show how far the run is. Nothing else is said, and nobody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progressed {}

impl Request for Progressed {
    fn summary(&self) -> String {
        "show how far the run is".to_owned()
    }
}
