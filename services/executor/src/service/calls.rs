//! Results of a workspace's calls by call id, so that a repeated call does not run again.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use proto::executor::{CheckOutcome, CheckResult, ToolResult, ToolStatus};
use tokio::sync::watch;

// A planner repeats only its last calls, so older results are dropped beyond this number of bytes.
const MAX_KEPT: usize = 4 * 1024 * 1024;
// Results that are kept whatever their size: as many as a planner requests at the same time.
const LEAST_KEPT: usize = 8;
/// Limit of known ids of finished calls. Beyond it the oldest ids are forgotten; a planner repeats only its
/// last calls, so none of them arrives again.
const MAX_IDS: usize = 4096;

/// Result that can be stored.
pub(crate) trait StoredCallResult: Clone {
    /// Approximate size in bytes.
    fn size(&self) -> usize;

    /// Creates a result that replaces a missing one, with the reason.
    fn unknown(why: &str) -> Self;
}

impl StoredCallResult for ToolResult {
    fn size(&self) -> usize {
        self.content.len()
    }

    fn unknown(why: &str) -> Self {
        Self {
            status: ToolStatus::Interrupted.into(),
            content: format!("{why} Look before you repeat it."),
            changed: true,
            ..Self::default()
        }
    }
}

impl StoredCallResult for CheckResult {
    fn size(&self) -> usize {
        let tests = self.tests.as_ref().map_or(0, |tests| {
            let failing: usize = tests
                .failing
                .iter()
                .map(|test| test.id.len() + test.message.len())
                .sum();
            let named = tests.passing.iter().chain(&tests.skipping);
            failing + named.map(String::len).sum::<usize>()
        });
        self.output_tail.len() + tests
    }

    fn unknown(why: &str) -> Self {
        Self {
            outcome: CheckOutcome::Infra.into(),
            reason: why.to_owned(),
            ..Self::default()
        }
    }
}

type ResultSlot<R> = watch::Sender<Option<R>>;

/// Results by call id.
pub(crate) struct CallMemory<R>(Arc<Mutex<CallResults<R>>>);

impl<R> Clone for CallMemory<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Default for CallMemory<R> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(CallResults {
            slots: HashMap::new(),
            kept: VecDeque::new(),
            dropped: VecDeque::new(),
            bytes: 0,
        })))
    }
}

struct CallResults<R> {
    /// Slots by call id; `None` after the result was dropped.
    slots: HashMap<String, Option<ResultSlot<R>>>,
    /// Ids and sizes of the stored results, the oldest first.
    kept: VecDeque<(String, usize)>,
    /// Ids whose results were dropped, the oldest first.
    dropped: VecDeque<String>,
    bytes: usize,
}

/// Outcome of looking up a call id.
pub(crate) enum CallStart<R: StoredCallResult> {
    /// The id is new: the caller runs the call and records the result.
    New(ResultRecorder<R>),
    /// The id is known: its result exists or will follow.
    Known(watch::Receiver<Option<R>>),
}

/// Recorder for the result of one call. If it is dropped without a result, the call counts as interrupted.
pub(crate) struct ResultRecorder<R: StoredCallResult> {
    memory: CallMemory<R>,
    id: String,
}

impl<R: StoredCallResult> CallMemory<R> {
    /// Finds a call id, or records it as new.
    pub(crate) fn begin(&self, id: &str) -> CallStart<R> {
        let mut calls = self.0.lock();
        match calls.slots.get(id) {
            Some(Some(slot)) => return CallStart::Known(slot.subscribe()),
            // The receiver keeps the value after its sender is dropped.
            Some(None) => return CallStart::Known(watch::Sender::new(Some(dropped_result())).subscribe()),
            None => {}
        }
        calls.slots.insert(id.to_owned(), Some(watch::Sender::new(None)));
        CallStart::New(ResultRecorder {
            memory: self.clone(),
            id: id.to_owned(),
        })
    }

    fn store(&self, id: &str, result: impl FnOnce() -> R) {
        let mut calls = self.0.lock();
        // After `forget` the id has no slot, so the recorder's destructor stores nothing.
        let Some(Some(slot)) = calls.slots.get(id) else {
            return;
        };
        // The recorder's destructor stores a result too; the first one counts.
        if slot.borrow().is_some() {
            return;
        }
        let result = result();
        let size = result.size();
        slot.send_replace(Some(result));
        calls.kept.push_back((id.to_owned(), size));
        calls.bytes += size;
        calls.make_room();
    }

    fn forget(&self, id: &str) {
        let mut calls = self.0.lock();
        if let Some(Some(slot)) = calls.slots.get(id)
            && slot.borrow().is_none()
        {
            calls.slots.remove(id);
        }
    }
}

impl<R> CallResults<R> {
    /// Drops the oldest results and ids beyond the limits, but never the last results.
    fn make_room(&mut self) {
        // Empty results count for nothing in bytes, so their number is limited too.
        while (self.bytes > MAX_KEPT || self.kept.len() > MAX_IDS) && self.kept.len() > LEAST_KEPT {
            let Some((id, size)) = self.kept.pop_front() else {
                return;
            };
            self.bytes -= size;
            // The id stays known, because a repeated call must not run again.
            self.slots.insert(id.clone(), None);
            self.dropped.push_back(id);
        }
        while self.kept.len() + self.dropped.len() > MAX_IDS
            && let Some(id) = self.dropped.pop_front()
        {
            self.slots.remove(&id);
        }
    }
}

impl<R: StoredCallResult> ResultRecorder<R> {
    /// Stores the result.
    pub(crate) fn finish(&self, result: R) {
        self.memory.store(&self.id, || result);
    }
}

impl<R: StoredCallResult> ResultRecorder<R> {
    /// Removes the call id: nothing was executed, so the caller may use it again.
    pub(crate) fn forget(&self) {
        self.memory.forget(&self.id);
    }
}

impl<R: StoredCallResult> Drop for ResultRecorder<R> {
    fn drop(&mut self) {
        self.memory.store(&self.id, interrupted_result);
    }
}

fn interrupted_result<R: StoredCallResult>() -> R {
    R::unknown("The call was cut; whether it took effect is not known.")
}

fn dropped_result<R: StoredCallResult>() -> R {
    R::unknown("The call has run, but its result is no longer kept; it was not run again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin_new_call(memory: &CallMemory<ToolResult>, id: &str) -> ResultRecorder<ToolResult> {
        match memory.begin(id) {
            CallStart::New(recorder) => recorder,
            CallStart::Known(_) => panic!("{id} is known"),
        }
    }

    fn find_known_result(memory: &CallMemory<ToolResult>, id: &str) -> Option<ToolResult> {
        match memory.begin(id) {
            CallStart::New(_) => panic!("{id} would run again"),
            CallStart::Known(result) => result.borrow().clone(),
        }
    }

    fn build_content_result(content: String) -> ToolResult {
        ToolResult {
            content,
            ..ToolResult::default()
        }
    }

    #[test]
    fn repeated_call_returns_first_result() {
        let memory = CallMemory::default();
        let recorder = begin_new_call(&memory, "a");
        assert_eq!(find_known_result(&memory, "a"), None);
        recorder.finish(build_content_result("done".to_owned()));
        assert_eq!(find_known_result(&memory, "a").unwrap().content, "done");
    }

    #[test]
    fn dropped_call_counts_as_interrupted() {
        let memory = CallMemory::<ToolResult>::default();
        drop(memory.begin("a"));
        assert_eq!(
            find_known_result(&memory, "a").unwrap().status(),
            ToolStatus::Interrupted
        );
    }

    #[test]
    fn a_check_that_is_dropped_proves_nothing() {
        let memory = CallMemory::<CheckResult>::default();
        drop(memory.begin("a"));
        let CallStart::Known(result) = memory.begin("a") else {
            panic!("it would run again")
        };
        let result = result.borrow().clone().unwrap();
        assert_eq!(result.outcome(), CheckOutcome::Infra);
        assert!(result.reason.contains("was cut"), "{}", result.reason);
    }

    #[test]
    fn forgotten_call_id_can_be_reused() {
        let memory = CallMemory::default();
        begin_new_call(&memory, "a").forget();
        begin_new_call(&memory, "a").finish(build_content_result("done".to_owned()));
        assert_eq!(find_known_result(&memory, "a").unwrap().content, "done");
    }

    #[test]
    fn dropped_result_never_runs_again() {
        let memory = CallMemory::default();
        for number in 0..200 {
            begin_new_call(&memory, &number.to_string()).finish(build_content_result("x".repeat(64 * 1024)));
        }
        let calls = memory.0.lock();
        assert!(
            calls.bytes <= MAX_KEPT && calls.kept.len() == 64,
            "{}",
            calls.kept.len()
        );
        drop(calls);
        assert!(
            find_known_result(&memory, "0")
                .unwrap()
                .content
                .contains("no longer kept")
        );
        assert_eq!(
            find_known_result(&memory, "199").unwrap().content.len(),
            64 * 1024
        );
        begin_new_call(&memory, "large").finish(build_content_result("x".repeat(2 * MAX_KEPT)));
        assert_eq!(
            find_known_result(&memory, "large").unwrap().content.len(),
            2 * MAX_KEPT
        );
    }

    #[test]
    fn known_call_ids_stay_within_limit() {
        for content in [String::new(), "x".repeat(MAX_KEPT / 100)] {
            let memory = CallMemory::default();
            for number in 0..3 * MAX_IDS {
                begin_new_call(&memory, &number.to_string()).finish(build_content_result(content.clone()));
            }
            let calls = memory.0.lock();
            assert_eq!(calls.slots.len(), MAX_IDS);
            assert!(calls.kept.len() + calls.dropped.len() <= MAX_IDS);
            drop(calls);
            // Ids within the limit never run again.
            for number in [2 * MAX_IDS, 3 * MAX_IDS - 1] {
                assert!(
                    find_known_result(&memory, &number.to_string()).is_some(),
                    "{number}"
                );
            }
        }
    }
}
