//! Memory of polls between rounds. A known finding costs no reads, and an unreadable one does not block the others.

use std::collections::{BTreeMap, BTreeSet};

// Limit of remembered findings. At the limit the memory is cleared, at the price of repeated reads.
const MOST: usize = 20_000;
// Retries of one finding: five rounds when other findings were readable meanwhile, 30 rounds (half an hour at the
// default interval) when it was the only one, because then the service itself may fail.
const PATIENCE: u32 = 30;
const ALONE: u32 = 1;
const AMONG_OTHERS: u32 = 6;

/// Findings that polls have handled or failed to read.
#[derive(Default)]
pub(crate) struct PollMemory {
    settled: BTreeSet<String>,
    abandoned: BTreeSet<String>,
    failed: BTreeMap<String, u32>,
}

impl PollMemory {
    /// True for a settled finding.
    pub(crate) fn knows(&self, finding: &str) -> bool {
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

    /// Counts a failed read. True when the finding has failed so often that the caller should give it up.
    pub(crate) fn is_hopeless(&mut self, finding: &str, others_were_read: bool) -> bool {
        if self.failed.len() >= MOST {
            self.failed.clear();
        }
        let spent = self.failed.entry(finding.to_owned()).or_default();
        *spent += if others_were_read { AMONG_OTHERS } else { ALONE };
        *spent >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_gives_up_sooner_among_readable() {
        let mut memory = PollMemory::default();
        let rounds = |memory: &mut PollMemory, finding: &str, others: bool| {
            (1..100).find(|_| memory.is_hopeless(finding, others))
        };
        assert_eq!(rounds(&mut memory, "a", true), Some(5));
        assert_eq!(rounds(&mut memory, "b", false), Some(30));
        memory.settle("a".to_owned());
        assert!(memory.knows("a") && !memory.knows("b"));
        memory.abandon("b".to_owned());
        assert!(memory.knows("b") && memory.has_abandoned("b") && !memory.has_abandoned("a"));
    }
}
