//! Memory of polls between rounds. A known finding costs no reads, and an unreadable one does not block the others.

use std::collections::{BTreeMap, BTreeSet};

// Limit of remembered findings. At the limit the memory is cleared, at the price of repeated reads.
const MOST: usize = 20_000;
// Sum of the weights of its failures at which a finding is given up. The weights are in `FailureCause::weight`.
const PATIENCE: u32 = 1_440;

/// Cause of a failed read, as far as its round shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The outside fails, and it answered for no finding of the round.
    Outage,
    /// The outside fails for this finding and answered for another one. A part of it may be out.
    PartialOutage,
    /// The read is refused, and no other finding was read. An operator may have to fix a permission.
    Refusal,
    /// The finding fails while others are read.
    Finding,
}

impl FailureCause {
    /// Part of the patience that a failure costs.
    const fn weight(self) -> u32 {
        match self {
            // An outage proves nothing about the finding, however long it is.
            Self::Outage => 0,
            // A day at the default interval. Without an end, a finding that a service can never answer would hold
            // the poll mark back for good.
            Self::PartialOutage => 1,
            // 30 rounds: half an hour at the default interval.
            Self::Refusal => PATIENCE / 30,
            // Five rounds.
            Self::Finding => PATIENCE / 5,
        }
    }
}

/// Failed reads of one finding.
#[derive(Clone, Copy, Default)]
struct ReadFailures {
    rounds: u32,
    /// Sum of the weights of the failures.
    weight: u32,
}

/// Findings that polls have handled or failed to read.
#[derive(Default)]
pub(crate) struct PollMemory {
    settled: BTreeSet<String>,
    abandoned: BTreeSet<String>,
    failed: BTreeMap<String, ReadFailures>,
}

impl PollMemory {
    /// True for a settled finding.
    pub(crate) fn has_settled(&self, finding: &str) -> bool {
        self.settled.contains(finding)
    }

    /// Records a finding as handled for good.
    pub(crate) fn settle(&mut self, finding: String) {
        if self.settled.len() >= MOST {
            self.settled.clear();
        }
        self.failed.remove(&finding);
        self.settled.insert(finding);
    }

    /// Records a finding that was given up. It counts as handled too.
    pub(crate) fn abandon(&mut self, finding: String) {
        if self.abandoned.len() >= MOST {
            self.abandoned.clear();
        }
        self.abandoned.insert(finding.clone());
        self.settle(finding);
    }

    /// True for a finding that was given up.
    pub(crate) fn has_abandoned(&self, finding: &str) -> bool {
        self.abandoned.contains(finding)
    }

    /// Number of rounds in which the finding could not be read.
    pub(crate) fn failed_rounds(&self, finding: &str) -> u32 {
        self.failed.get(finding).map_or(0, |failures| failures.rounds)
    }

    /// Forgets the failures of a finding that was read and is not handled for good.
    pub(crate) fn forget_failures(&mut self, finding: &str) {
        self.failed.remove(finding);
    }

    /// Counts a failed read.
    pub(crate) fn count_failure(&mut self, finding: &str, cause: FailureCause) {
        if self.failed.len() >= MOST {
            self.failed.clear();
        }
        let failures = self.failed.entry(finding.to_owned()).or_default();
        failures.rounds = failures.rounds.saturating_add(1);
        failures.weight = failures.weight.saturating_add(cause.weight());
    }

    /// True when the finding has failed so often that the caller should give it up.
    pub(crate) fn is_hopeless(&self, finding: &str) -> bool {
        self.failed
            .get(finding)
            .is_some_and(|failures| failures.weight >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_depends_on_cause_of_failures() {
        let mut memory = PollMemory::default();
        let rounds = |memory: &mut PollMemory, finding: &str, cause| {
            (1..3_000).find(|_| {
                memory.count_failure(finding, cause);
                memory.is_hopeless(finding)
            })
        };
        assert_eq!(rounds(&mut memory, "a", FailureCause::Finding), Some(5));
        assert_eq!(rounds(&mut memory, "b", FailureCause::Refusal), Some(30));
        assert_eq!(rounds(&mut memory, "c", FailureCause::PartialOutage), Some(1_440));
        assert_eq!(rounds(&mut memory, "d", FailureCause::Outage), None);
        assert_eq!((memory.failed_rounds("a"), memory.failed_rounds("d")), (5, 2_999));
        memory.forget_failures("d");
        assert_eq!(memory.failed_rounds("d"), 0);
        memory.settle("a".to_owned());
        assert!(memory.has_settled("a") && !memory.has_settled("b"));
        memory.abandon("b".to_owned());
        assert!(memory.has_settled("b") && memory.has_abandoned("b") && !memory.has_abandoned("a"));
    }
}
