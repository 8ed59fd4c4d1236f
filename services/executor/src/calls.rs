//! What became of each tool call of a workspace, so that a repeated call id runs nothing.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use proto::executor::{SandboxLevel, ToolResult, ToolStatus};
use tokio::sync::watch;

/// Text of all results that are kept, in bytes. A planner asks again for the last call only.
const MAX_KEPT: usize = 4 * 1024 * 1024;

type Slot = watch::Sender<Option<ToolResult>>;

/// Results by call id.
#[derive(Clone, Default)]
pub(crate) struct CallMemory(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    /// Without a slot: the result was let go.
    slots: HashMap<String, Option<Slot>>,
    /// Ids of kept results with their sizes, the oldest first.
    kept: VecDeque<(String, usize)>,
    bytes: usize,
}

/// Whether a call id is new.
pub(crate) enum Begun {
    /// It is: run it and record the result.
    New(Recorder),
    /// It is known: its result is here or will be.
    Known(watch::Receiver<Option<ToolResult>>),
}

/// Takes the result of one call. Dropped without one, the call counts as interrupted.
pub(crate) struct Recorder {
    memory: CallMemory,
    id: String,
}

impl CallMemory {
    /// Looks a call id up and remembers it.
    pub(crate) fn begin(&self, id: &str) -> Begun {
        let mut calls = self.lock();
        match calls.slots.get(id) {
            Some(Some(slot)) => return Begun::Known(slot.subscribe()),
            Some(None) => return Begun::Known(watch::Sender::new(Some(let_go())).subscribe()),
            None => {}
        }
        calls.slots.insert(id.to_owned(), Some(watch::Sender::new(None)));
        Begun::New(Recorder {
            memory: self.clone(),
            id: id.to_owned(),
        })
    }

    fn store(&self, id: &str, result: impl FnOnce() -> ToolResult) {
        let mut calls = self.lock();
        let Some(Some(slot)) = calls.slots.get(id) else {
            return;
        };
        if slot.borrow().is_some() {
            return;
        }
        let result = result();
        let size = result.content.len();
        slot.send_replace(Some(result));
        calls.kept.push_back((id.to_owned(), size));
        calls.bytes += size;
        calls.make_room();
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    /// Lets the oldest results go, never the last one.
    fn make_room(&mut self) {
        while self.bytes > MAX_KEPT && self.kept.len() > 1 {
            let Some((id, size)) = self.kept.pop_front() else {
                return;
            };
            self.bytes -= size;
            self.slots.insert(id, None);
        }
    }
}

impl Recorder {
    /// Stores the result.
    pub(crate) fn finish(&self, result: ToolResult) {
        self.memory.store(&self.id, || result);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.memory.store(&self.id, interrupted);
    }
}

fn interrupted() -> ToolResult {
    unknown("The call was cut; whether it took effect is not known. Look before you repeat it.")
}

fn let_go() -> ToolResult {
    unknown(
        "The call has run, but its result is no longer kept; it was not run again. Look before you repeat it.",
    )
}

fn unknown(content: &str) -> ToolResult {
    ToolResult {
        status: ToolStatus::Interrupted.into(),
        content: content.to_owned(),
        changed: true,
        sandbox_level: SandboxLevel::Unspecified.into(),
        duration_ms: 0,
        branch: String::new(),
        head_commit: String::new(),
        exit_code: None,
        truncated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(memory: &CallMemory, id: &str) -> Recorder {
        match memory.begin(id) {
            Begun::New(recorder) => recorder,
            Begun::Known(_) => panic!("{id} is known"),
        }
    }

    fn known(memory: &CallMemory, id: &str) -> Option<ToolResult> {
        match memory.begin(id) {
            Begun::New(_) => panic!("{id} would run again"),
            Begun::Known(result) => result.borrow().clone(),
        }
    }

    fn said(content: String) -> ToolResult {
        ToolResult {
            content,
            ..ToolResult::default()
        }
    }

    #[test]
    fn a_repeated_call_finds_the_first_ones_result() {
        let memory = CallMemory::default();
        let recorder = begun(&memory, "a");
        assert_eq!(known(&memory, "a"), None);
        recorder.finish(said("done".to_owned()));
        assert_eq!(known(&memory, "a").unwrap().content, "done");
    }

    #[test]
    fn a_call_that_is_dropped_counts_as_interrupted() {
        let memory = CallMemory::default();
        drop(memory.begin("a"));
        assert_eq!(known(&memory, "a").unwrap().status(), ToolStatus::Interrupted);
    }

    #[test]
    fn results_are_kept_within_bounds_and_one_that_is_gone_never_runs_again() {
        let memory = CallMemory::default();
        for number in 0..200 {
            begun(&memory, &number.to_string()).finish(said("x".repeat(64 * 1024)));
        }
        let calls = memory.lock();
        assert!(
            calls.bytes <= MAX_KEPT && calls.kept.len() == 64,
            "{}",
            calls.kept.len()
        );
        drop(calls);
        assert!(known(&memory, "0").unwrap().content.contains("no longer kept"));
        assert_eq!(known(&memory, "199").unwrap().content.len(), 64 * 1024);
        begun(&memory, "large").finish(said("x".repeat(2 * MAX_KEPT)));
        assert_eq!(known(&memory, "large").unwrap().content.len(), 2 * MAX_KEPT);
    }
}
