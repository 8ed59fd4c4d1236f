//! Slots for clones: a total number, and a smaller one for each run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::RunId;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

// Concurrent `upload-pack` processes.
const PROCESSES: usize = 16;
// Slots of one run. An executor clones one repository at a time, and its next request may overlap the previous one.
const PER_RUN: usize = 2;
// Longest wait of a request for a slot.
const PATIENCE: Duration = Duration::from_secs(10);

/// Slots of the gate. Clones share them.
#[derive(Clone)]
pub(super) struct CloneSlots {
    all: Arc<Semaphore>,
    runs: Arc<Mutex<HashMap<RunId, Arc<Semaphore>>>>,
}

/// One slot. Dropping it frees the slot.
pub(super) struct CloneSlot {
    _all: OwnedSemaphorePermit,
    // Declared before the entry, because fields drop in this order and the entry counts the free permits.
    _run: OwnedSemaphorePermit,
    _entry: RunSlotEntry,
}

/// Removes the run's semaphore from the map when no request uses it.
struct RunSlotEntry {
    runs: Arc<Mutex<HashMap<RunId, Arc<Semaphore>>>>,
    run: RunId,
}

impl Default for CloneSlots {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(PROCESSES)),
            runs: Arc::default(),
        }
    }
}

impl CloneSlots {
    /// Waits for a slot for a clone of this run. `None` if none becomes free within 10 s.
    pub(super) async fn take(&self, run: &RunId) -> Option<CloneSlot> {
        let places = {
            let mut runs = self.runs.lock();
            let places = runs.entry(run.clone());
            Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(PER_RUN))))
        };
        // Created before the wait, so that a request that gives up removes the map entry, too.
        let entry = RunSlotEntry {
            runs: Arc::clone(&self.runs),
            run: run.clone(),
        };
        // The run's own limit comes first, so that its waiting requests hold no slot of other runs.
        let taking = async {
            Some((
                places.acquire_owned().await.ok()?,
                self.all.clone().acquire_owned().await.ok()?,
            ))
        };
        let (run, all) = timeout(PATIENCE, taking).await.ok()??;
        Some(CloneSlot {
            _all: all,
            _run: run,
            _entry: entry,
        })
    }
}

impl Drop for RunSlotEntry {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        // Waiting requests hold a reference to the semaphore, too.
        if runs
            .get(&self.run)
            .is_some_and(|places| Arc::strong_count(places) == 1)
        {
            runs.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_run_id(number: u64) -> RunId {
        RunId::new("jira:ENG-1".parse().unwrap(), number)
    }

    #[tokio::test(start_paused = true)]
    async fn run_uses_at_most_two_clone_slots() {
        let slots = CloneSlots::default();
        let first = slots.take(&build_run_id(1)).await.unwrap();
        let _second = slots.take(&build_run_id(1)).await.unwrap();
        assert!(slots.take(&build_run_id(1)).await.is_none(), "a third");
        let mut others = Vec::new();
        for number in 2..=15 {
            others.push(slots.take(&build_run_id(number)).await.unwrap());
        }
        assert!(slots.take(&build_run_id(16)).await.is_none(), "all are taken");
        drop(first);
        assert!(slots.take(&build_run_id(16)).await.is_some());
        assert!(slots.take(&build_run_id(1)).await.is_some());
    }

    #[tokio::test]
    async fn slots_of_finished_run_are_removed() {
        let slots = CloneSlots::default();
        let both = (
            slots.take(&build_run_id(1)).await,
            slots.take(&build_run_id(1)).await,
        );
        assert_eq!(slots.runs.lock().len(), 1);
        drop(both);
        assert!(slots.runs.lock().is_empty());
    }
}
