//! Queue of runs that wait for a slot of an executor.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{ids::RunId, time::Timestamp},
    journal::{kind::RecordKind, record_format::StoredRecord},
};

/// The runs that wait for a slot of one pool, in the order of their arrival. Each pool has one record, which
/// is changed by compare-and-set.
// One record per pool keeps the order of arrival without a listing, and a crashed planner leaves nothing
// behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotQueue {
    /// The waiting runs, oldest first.
    pub waiting: Vec<SlotWaiter>,
}

/// One waiting run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotWaiter {
    /// Id of the run.
    pub run: RunId,
    /// Start of the wait.
    pub since: Timestamp,
}

impl StoredRecord for SlotQueue {
    const KIND: RecordKind = RecordKind::Control;
}

impl SlotQueue {
    /// Returns true when the run may take one of `free` slots: the runs before it do not need them all.
    pub fn is_turn(&self, run: &RunId, free: u32) -> bool {
        let before = self
            .waiting
            .iter()
            .take_while(|waiter| waiter.run != *run)
            // A run that is not in the queue counts as the last one, because `take_while` passes all entries.
            .count();
        u32::try_from(before).is_ok_and(|before| before < free)
    }

    /// Returns true when the run is in the queue.
    pub fn has(&self, run: &RunId) -> bool {
        self.waiting.iter().any(|waiter| waiter.run == *run)
    }

    /// Appends a run. Returns false when the run is already in the queue, where it keeps its position.
    pub fn join(&mut self, run: &RunId, since: Timestamp) -> bool {
        if self.has(run) {
            return false;
        }
        let run = run.clone();
        self.waiting.push(SlotWaiter { run, since });
        true
    }

    /// Adds a run that left the queue at its former place: before the runs that came after `since`. Returns false
    /// when the run is already in the queue, where it keeps its position.
    pub fn rejoin(&mut self, run: &RunId, since: Timestamp) -> bool {
        if self.has(run) {
            return false;
        }
        let place = self.waiting.iter().position(|waiter| waiter.since > since);
        let run = run.clone();
        self.waiting
            .insert(place.unwrap_or(self.waiting.len()), SlotWaiter { run, since });
        true
    }

    /// Returns the start of a run's wait; `None` when the run is not in the queue.
    pub fn waits_since(&self, run: &RunId) -> Option<Timestamp> {
        let waiter = self.waiting.iter().find(|waiter| waiter.run == *run);
        waiter.map(|waiter| waiter.since)
    }

    /// Removes a run. Returns false when the run is not in the queue.
    pub fn leave(&mut self, run: &RunId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiter| waiter.run != *run);
        self.waiting.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_run_id(sequence: u64) -> RunId {
        format!("jira:ENG-{sequence}@{sequence}").parse().unwrap()
    }

    #[test]
    fn slots_go_to_those_who_came_first() {
        let mut queue = SlotQueue::default();
        for number in 1..=3 {
            assert!(queue.join(
                &build_run_id(number),
                Timestamp::from_unix_ms(number.cast_signed())
            ));
        }
        assert!(
            !queue.join(&build_run_id(1), Timestamp::from_unix_ms(9)),
            "a run that waits keeps its place"
        );
        let turns = |queue: &SlotQueue, free| {
            (1..=4)
                .map(|n| queue.is_turn(&build_run_id(n), free))
                .collect::<Vec<_>>()
        };
        assert_eq!(turns(&queue, 0), [false; 4]);
        assert_eq!(turns(&queue, 2), [true, true, false, false]);
        assert_eq!(turns(&queue, 4), [true; 4], "a newcomer is fourth");
        assert!(queue.leave(&build_run_id(1)));
        assert!(!queue.leave(&build_run_id(1)));
        assert_eq!(turns(&queue, 2), [false, true, true, false]);
    }

    #[test]
    fn run_rejoins_queue_at_former_place() {
        let mut queue = SlotQueue::default();
        let at = |number: u64| Timestamp::from_unix_ms(number.cast_signed());
        for number in 1..=3 {
            queue.join(&build_run_id(number), at(number));
        }
        for number in [1, 2, 3] {
            let before = queue.clone();
            assert_eq!(queue.waits_since(&build_run_id(number)), Some(at(number)));
            assert!(queue.leave(&build_run_id(number)));
            assert_eq!(queue.waits_since(&build_run_id(number)), None);
            assert!(queue.rejoin(&build_run_id(number), at(number)));
            assert_eq!(queue, before);
            assert!(!queue.rejoin(&build_run_id(number), at(0)), "it keeps its place");
            assert_eq!(queue, before);
        }
    }
}
