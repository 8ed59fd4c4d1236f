//! Effort of earlier runs on a repository, for an estimate of the next run.

use serde::{Deserialize, Serialize};

use crate::{
    identity::ids::RunId,
    journal::{kind::RecordKind, record_format::StoredRecord},
    work::intake::WorkClass,
};

// Maximum number of runs in a record.
const KEPT: usize = 200;
// Maximum number of runs in an estimate, the latest of the class.
const LATEST: usize = 50;
// Minimum number of runs for an estimate.
const FEWEST: usize = 3;

/// The latest runs that opened a pull request in a repository, oldest first. The list is a basis for
/// estimates: a run may be missing.
// A record per repository instead of a search over journals. It may miss a run, so it is only used for
// estimates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortHistory {
    /// The runs, oldest first; at most 200.
    pub runs: Vec<PastRun>,
}

impl StoredRecord for EffortHistory {
    const KIND: RecordKind = RecordKind::Control;
}

/// Effort of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// Id of the run.
    pub run: RunId,
    /// Final class of the ticket's work.
    pub class: WorkClass,
    /// The effort of the run.
    pub effort: RunEffort,
}

/// Time, cost and size of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEffort {
    /// Working time in milliseconds, without the time of waiting for people.
    pub busy_ms: u64,
    /// Cost of model calls in millionths of a dollar; absent: a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Number of tokens that models read and wrote.
    #[serde(default)]
    pub tokens: u64,
    /// Number of lines added and removed, tests included.
    #[serde(default)]
    pub lines: u64,
}

/// Estimate of the effort for work of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortEstimate {
    /// Number of runs that the estimate is based on.
    pub runs: u32,
    /// Working time in milliseconds.
    pub busy_ms: EffortQuartiles,
    /// Cost in millionths of a dollar; absent: one of the runs has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<EffortQuartiles>,
    /// Number of lines added and removed.
    pub lines: EffortQuartiles,
}

/// Quartiles of many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortQuartiles {
    /// The lower quartile: a quarter of the values is lower.
    pub low: u64,
    /// The median: half of the values is lower.
    pub median: u64,
    /// The upper quartile: a quarter of the values is higher.
    pub high: u64,
}

impl EffortHistory {
    /// Adds a run and drops the oldest runs above the limit. A run that is already present is ignored.
    #[must_use]
    pub fn with(mut self, run: PastRun) -> Self {
        // A run's result may be recorded twice, e.g. after a takeover.
        if self.runs.iter().all(|known| known.run != run.run) {
            self.runs.push(run);
        }
        self.runs.drain(..self.runs.len().saturating_sub(KEPT));
        self
    }

    /// Estimates the effort for work of a class. `None` for fewer than three known runs.
    pub fn forecast(&self, class: WorkClass) -> Option<EffortEstimate> {
        let of_class = self.runs.iter().rev().filter(|run| run.class == class);
        let efforts: Vec<RunEffort> = of_class.take(LATEST).map(|run| run.effort).collect();
        let all = |value: fn(&RunEffort) -> u64| EffortQuartiles::of(efforts.iter().map(value).collect());
        // One run without a price makes the cost of the estimate unknown.
        let costs: Option<Vec<u64>> = efforts.iter().map(|effort| effort.cost_micros).collect();
        if efforts.len() < FEWEST {
            return None;
        }
        Some(EffortEstimate {
            runs: u32::try_from(efforts.len()).unwrap_or(u32::MAX),
            busy_ms: all(|effort| effort.busy_ms)?,
            cost_micros: costs.and_then(EffortQuartiles::of),
            lines: all(|effort| effort.lines)?,
        })
    }
}

impl EffortQuartiles {
    fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let at = |quarter: usize| {
            values
                .get((values.len().checked_sub(1)? * quarter).div_ceil(4))
                .copied()
        };
        Some(Self {
            low: at(1)?,
            median: at(2)?,
            high: at(3)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_past_run(sequence: u64, class: WorkClass, busy_ms: u64, cost_micros: Option<u64>) -> PastRun {
        PastRun {
            run: RunId::new("jira:ENG-1".parse().unwrap(), sequence),
            class,
            effort: RunEffort {
                busy_ms,
                cost_micros,
                tokens: 1,
                lines: busy_ms,
            },
        }
    }

    #[test]
    fn forecast_needs_three_runs_of_class() {
        let mut history = EffortHistory::default();
        for (number, busy) in (1..).zip([50, 10, 40]) {
            assert_eq!(history.forecast(WorkClass::Normal), None);
            history = history.with(build_past_run(number, WorkClass::Normal, busy, Some(busy * 2)));
            history = history.with(build_past_run(100 + number, WorkClass::Large, 9_000, None));
        }
        let forecast = history.forecast(WorkClass::Normal).unwrap();
        assert_eq!(forecast.runs, 3);
        let middle = EffortQuartiles {
            low: 40,
            median: 40,
            high: 50,
        };
        assert_eq!(forecast.busy_ms, middle);
        assert_eq!(forecast.cost_micros.unwrap().median, 80);
        let large = history.forecast(WorkClass::Large).unwrap();
        assert_eq!((large.lines.high, large.cost_micros), (9_000, None));
    }

    #[test]
    fn history_drops_duplicates_and_oldest_runs() {
        let mut history = EffortHistory::default();
        for number in 1..=KEPT as u64 + 5 {
            history = history.with(build_past_run(number, WorkClass::Normal, number, None));
            history = history.with(build_past_run(number, WorkClass::Normal, 0, None));
        }
        assert_eq!(history.runs.len(), KEPT);
        assert_eq!(history.runs[0].effort.busy_ms, 6);
        assert_eq!(history.forecast(WorkClass::Normal).unwrap().runs, 50);
    }
}
