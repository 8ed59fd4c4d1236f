//! Split of a run's time over models, tools and waiting.

use serde::{Deserialize, Serialize};

use super::TimeSpent;
use crate::Timestamp;

/// Activity of the run at its last entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunActivity {
    #[default]
    Steps,
    Model,
    Tools,
    Waiting,
}

// Current activity of a run with its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActivityClock {
    at: RunActivity,
    since: Timestamp,
}

impl ActivityClock {
    /// Adds the time until now to the counter of the current activity.
    pub(super) fn count(&mut self, now: Timestamp, spent: &mut TimeSpent) {
        let passed = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let to = match self.at {
            RunActivity::Steps => None,
            RunActivity::Model => Some(&mut spent.model_ms),
            RunActivity::Tools => Some(&mut spent.tools_ms),
            RunActivity::Waiting => Some(&mut spent.waiting_ms),
        };
        if let Some(to) = to {
            *to = to.saturating_add(passed);
        }
        self.since = now;
    }

    /// Begins an activity, which ends the previous one.
    pub(super) const fn begin(&mut self, activity: RunActivity) {
        self.at = activity;
    }
}
