//! Events that parked runs wait for.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// Event that a parked run waits for. The planner releases the ticket during the wait, for a report after a short
/// time, so any planner may continue the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WaitCondition {
    /// The reporter completes the requested report.
    Report,
    /// A person decides at the approval gate.
    Decision,
    /// A person answers a question.
    Answer,
    /// The timer of a retry elapses, or a person requests the retry.
    Retry,
    /// A slot of an executor becomes free.
    Slot,
}

impl WaitCondition {
    /// The name in the API and in logs.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the state of the run for people: `waits for a person's decision`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Decision => "waits for a person's decision",
            Self::Answer => "waits for an answer on the ticket",
            Self::Report => "waits until something is written outside",
            Self::Retry => "waits to try again",
            Self::Slot => "waits for a free place",
        }
    }

    /// Returns true when only a person can end the wait.
    pub const fn is_for_person(self) -> bool {
        match self {
            Self::Decision | Self::Answer => true,
            Self::Report | Self::Retry | Self::Slot => false,
        }
    }

    /// Returns true when the wait is short enough to keep the workspace open.
    pub const fn keeps_workspace(self) -> bool {
        // An open workspace occupies a slot, so a wait for people or for a retry releases it.
        match self {
            Self::Report | Self::Slot => true,
            Self::Decision | Self::Answer | Self::Retry => false,
        }
    }
}
