//! Split of a run's time over models, tools and waiting.

use serde::{Deserialize, Serialize};

use super::TimeSpent;
use crate::{Fact, JournalEntry, Timestamp};

// Activity of the run at its last entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunActivity {
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
    /// Adds the time up to an entry to the counter of the current activity.
    pub(super) fn count(&mut self, entry: &JournalEntry, spent: &mut TimeSpent) {
        let passed = u64::try_from(entry.at.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let to = match self.at {
            RunActivity::Steps => None,
            RunActivity::Model => Some(&mut spent.model_ms),
            RunActivity::Tools => Some(&mut spent.tools_ms),
            RunActivity::Waiting => Some(&mut spent.waiting_ms),
        };
        if let Some(to) = to {
            *to = to.saturating_add(passed);
        }
        self.since = entry.at;
        // The old activity gets the elapsed time first; the entry then determines the next activity.
        self.at = self.after(&entry.fact);
    }

    /// Returns the activity after a fact. A takeover and news do not change it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "any other fact ends what was under way"
    )]
    const fn after(self, fact: &Fact) -> RunActivity {
        match fact {
            // These facts come from outside, in the middle of an activity that goes on.
            Fact::TakenOver { .. } | Fact::NewsArrived { .. } => self.at,
            Fact::ModelRequested { .. } | Fact::SummaryRequested { .. } => RunActivity::Model,
            Fact::ToolRequested { .. } | Fact::CheckRequested { .. } | Fact::WorkspaceRequested { .. } => {
                RunActivity::Tools
            }
            Fact::Parked { .. } => RunActivity::Waiting,
            _ => RunActivity::Steps,
        }
    }
}
