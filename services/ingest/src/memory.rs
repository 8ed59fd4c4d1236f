//! What polls remember from one round to the next, so that a known finding costs no reads and one that cannot be read
//! does not stand in the way of the others.

use std::collections::{BTreeMap, BTreeSet};

/// How much is remembered; beyond that it begins anew, at the price of reads.
const MOST: usize = 20_000;
/// How long one finding is tried again: about five rounds when others could be read meanwhile, half an hour of rounds
/// of a minute when it was the only one, for then the service itself may be what fails.
const PATIENCE: u32 = 30;
const ALONE: u32 = 1;
const AMONG_OTHERS: u32 = 6;

/// What polls remember.
#[derive(Default)]
pub(crate) struct Memory {
    settled: BTreeSet<String>,
    failed: BTreeMap<String, u32>,
}

impl Memory {
    /// Whether a finding needs no second look.
    pub(crate) fn knows(&self, finding: &str) -> bool {
        self.settled.contains(finding)
    }

    /// A finding that needs no second look.
    pub(crate) fn settle(&mut self, finding: String) {
        if self.settled.len() >= MOST {
            self.settled.clear();
        }
        self.failed.remove(&finding);
        self.settled.insert(finding);
    }

    /// A finding that could not be read for now; true when it has failed so often that it has to be given up.
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
    fn a_finding_is_given_up_sooner_when_others_can_be_read() {
        let mut memory = Memory::default();
        let rounds = |memory: &mut Memory, finding: &str, others: bool| {
            (1..100).find(|_| memory.is_hopeless(finding, others))
        };
        assert_eq!(rounds(&mut memory, "a", true), Some(5));
        assert_eq!(rounds(&mut memory, "b", false), Some(30));
        memory.settle("a".to_owned());
        assert!(memory.knows("a") && !memory.knows("b"));
    }
}
