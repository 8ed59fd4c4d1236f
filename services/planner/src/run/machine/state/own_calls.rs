//! Tool calls that the planner itself makes in a phase.

use domain::{ToolCall, ToolResult};

use super::dialog::{CallResult, TurnCall, TurnCallState};

/// Tool of the executor that returns the change.
pub(crate) const DIFF: &str = "diff";

/// Planner's own tool calls since the last output of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnCallState {
    calls: Vec<TurnCall>,
}

impl OwnCallState {
    /// Forgets the calls after an output, and at a restart of the work.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the calls, in order.
    pub(crate) fn calls(&self) -> &[TurnCall] {
        &self.calls
    }

    /// Returns the call without a result.
    pub(crate) fn open(&self) -> Option<&TurnCall> {
        self.calls.iter().find(|call| call.is_open())
    }

    /// Returns the call of this tool.
    pub(crate) fn find(&self, name: &str) -> Option<&TurnCall> {
        self.calls.iter().find(|call| call.call.name == name)
    }

    /// Returns the result of the call of this tool.
    pub(crate) fn result(&self, name: &str) -> Option<&ToolResult> {
        match &self.find(name)?.state {
            TurnCallState::Finished {
                result: CallResult::Ran(result),
                ..
            } => Some(result),
            TurnCallState::Finished { .. } | TurnCallState::Waiting | TurnCallState::Running { .. } => None,
        }
    }

    /// Returns the change as text, once it is fetched for its review.
    pub(crate) fn diff(&self) -> Option<&str> {
        self.result(DIFF).map(|diff| diff.content.as_str())
    }

    pub(super) fn calls_mut(&mut self) -> &mut [TurnCall] {
        &mut self.calls
    }

    pub(super) fn open_mut(&mut self) -> Option<&mut TurnCall> {
        self.calls.iter_mut().find(|call| call.is_open())
    }

    pub(super) fn add(&mut self, call: &ToolCall) {
        self.calls.push(TurnCall::new(call.clone()));
    }
}
