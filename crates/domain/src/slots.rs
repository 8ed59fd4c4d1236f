//! Who waits for a slot of an executor.

use serde::{Deserialize, Serialize};

use crate::{RecordKind, RunId, Stored, Timestamp};

/// The runs that wait for a slot of one pool, first come first served. One record for each pool, changed by
/// compare-and-set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotQueue {
    /// Oldest first.
    pub waiting: Vec<SlotWaiter>,
}

/// One run that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotWaiter {
    /// The run.
    pub run: RunId,
    /// Since when.
    pub since: Timestamp,
}

impl Stored for SlotQueue {
    const KIND: RecordKind = RecordKind::Control;
}

impl SlotQueue {
    /// Whether it is the run's turn when `free` slots are free: nobody who came before it needs them.
    pub fn is_turn(&self, run: &RunId, free: u32) -> bool {
        let before = self
            .waiting
            .iter()
            .take_while(|waiter| waiter.run != *run)
            .count();
        u32::try_from(before).is_ok_and(|before| before < free)
    }

    /// Whether the run is in the queue.
    pub fn has(&self, run: &RunId) -> bool {
        self.waiting.iter().any(|waiter| waiter.run == *run)
    }

    /// Puts a run at the end; false when it waits already, and keeps its place.
    pub fn join(&mut self, run: &RunId, since: Timestamp) -> bool {
        if self.has(run) {
            return false;
        }
        let run = run.clone();
        self.waiting.push(SlotWaiter { run, since });
        true
    }

    /// Takes a run out; false when it was not in.
    pub fn leave(&mut self, run: &RunId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiter| waiter.run != *run);
        self.waiting.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sequence: u64) -> RunId {
        format!("jira:ENG-{sequence}@{sequence}").parse().unwrap()
    }

    #[test]
    fn slots_go_to_those_who_came_first() {
        let mut queue = SlotQueue::default();
        for number in 1..=3 {
            assert!(queue.join(&run(number), Timestamp::from_unix_ms(number.cast_signed())));
        }
        assert!(
            !queue.join(&run(1), Timestamp::from_unix_ms(9)),
            "a run that waits keeps its place"
        );
        let turns =
            |queue: &SlotQueue, free| (1..=4).map(|n| queue.is_turn(&run(n), free)).collect::<Vec<_>>();
        assert_eq!(turns(&queue, 0), [false; 4]);
        assert_eq!(turns(&queue, 2), [true, true, false, false]);
        assert_eq!(turns(&queue, 4), [true; 4], "a newcomer is fourth");
        assert!(queue.leave(&run(1)));
        assert!(!queue.leave(&run(1)));
        assert_eq!(turns(&queue, 2), [false, true, true, false]);
    }
}
