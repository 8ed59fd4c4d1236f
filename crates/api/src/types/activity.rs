//! Results of the last days: ended work, its cost and its lead time.

use domain::Dollars;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Period of the results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ActivityQuery {
    /// Number of days up to today, UTC; 30 by default, from 1 to 90.
    pub days: Option<u32>,
}

impl ActivityQuery {
    /// Number of days without a choice.
    pub const DAYS: u32 = 30;
    /// Largest number of days.
    pub const MOST_DAYS: u32 = 90;
}

/// Results of some days. Each ticket without live runs counts at most once: by its pull requests, or as failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityView {
    /// One item for each day, oldest first; the last one is today.
    pub days: Vec<ActivityDay>,
    /// Results of all days.
    pub total: ActivityTotal,
}

/// Results of one day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityDay {
    /// The day, UTC: `2026-11-23`.
    pub day: String,
    /// Results of the day.
    pub total: ActivityTotal,
}

/// Ended work, cost and lead time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityTotal {
    /// Number of tickets whose pull request was merged.
    pub merged: u64,
    /// Number of tickets whose pull request was closed without a merge.
    pub closed: u64,
    /// Number of tickets whose last run failed.
    pub failed: u64,
    /// Number of runs that began.
    pub runs: u64,
    /// Cost of the models of these runs, in dollars; replies without a known price count as 0.
    #[schema(value_type = f64)]
    pub cost_usd: Dollars,
    /// Number of replies without a known price.
    pub unpriced: u64,
    /// Median time from the first request of a ticket to its merge, in milliseconds; absent: nothing was merged.
    pub lead_ms: Option<u64>,
}

impl ActivityTotal {
    /// Number of tickets that ended.
    pub const fn ended(&self) -> u64 {
        self.merged
            .saturating_add(self.closed)
            .saturating_add(self.failed)
    }

    /// Share of the ended tickets that were merged, in percent; `None` when none ended.
    pub const fn merge_percent(&self) -> Option<u64> {
        // Rounded down: only when everything was merged does the rate reach 100.
        self.merged.saturating_mul(100).checked_div(self.ended())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_rate_counts_every_ended_ticket() {
        let total = ActivityTotal {
            merged: 2,
            closed: 1,
            failed: 1,
            ..ActivityTotal::default()
        };
        assert_eq!((total.ended(), total.merge_percent()), (4, Some(50)));
        assert_eq!(ActivityTotal::default().merge_percent(), None);
    }
}
