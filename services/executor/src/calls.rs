//! What became of each tool call of a workspace, so that a repeated call id runs nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use proto::executor::{SandboxLevel, ToolResult, ToolStatus};
use tokio::sync::watch;

type Slot = watch::Sender<Option<ToolResult>>;

/// Results by call id.
#[derive(Clone, Default)]
pub(crate) struct CallMemory(Arc<Mutex<HashMap<String, Slot>>>);

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
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = calls.get(id) {
            return Begun::Known(slot.subscribe());
        }
        calls.insert(id.to_owned(), watch::Sender::new(None));
        Begun::New(Recorder {
            memory: self.clone(),
            id: id.to_owned(),
        })
    }

    fn store(&self, id: &str, result: impl FnOnce() -> ToolResult) {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = calls.get(id) {
            slot.send_if_modified(|stored| {
                let is_new = stored.is_none();
                stored.get_or_insert_with(result);
                is_new
            });
        }
    }
}

impl Recorder {
    /// Stores the result for good.
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
    ToolResult {
        status: ToolStatus::Interrupted.into(),
        content: "The call was cut; whether it took effect is not known. Look before you repeat it."
            .to_owned(),
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

    #[test]
    fn a_repeated_call_finds_the_first_ones_result() {
        let memory = CallMemory::default();
        let Begun::New(recorder) = memory.begin("a") else {
            panic!("new")
        };
        let Begun::Known(waiting) = memory.begin("a") else {
            panic!("known")
        };
        assert!(waiting.borrow().is_none());
        recorder.finish(ToolResult {
            content: "done".to_owned(),
            ..ToolResult::default()
        });
        assert_eq!(waiting.borrow().as_ref().unwrap().content, "done");
    }

    #[test]
    fn a_call_that_is_dropped_counts_as_interrupted() {
        let memory = CallMemory::default();
        drop(memory.begin("a"));
        let Begun::Known(known) = memory.begin("a") else {
            panic!("known")
        };
        assert_eq!(known.borrow().as_ref().unwrap().status(), ToolStatus::Interrupted);
    }
}
