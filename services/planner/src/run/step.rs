//! The next step of a run, and the steps that every job is made of.

use domain::{
    BranchRef, CallId, Fact, ReportId, ReportRequest, StopReason, Timestamp, ToolCall, ToolResult, WaitsFor,
};

use super::state::{Call, CallState, Goal, RunState};

/// The next step of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Write this down; nothing outside changes.
    Record(Fact),
    /// Ask an executor for the workspace.
    OpenWorkspace { id: CallId },
    /// Ask the model.
    AskModel { id: CallId },
    /// Let the executor run a tool.
    CallTool {
        id: CallId,
        call: ToolCall,
        at: Timestamp,
    },
    /// Keep the workspace's changes.
    TakeSnapshot,
    /// Hand a recorded report to the reporter.
    SendReport {
        id: ReportId,
        request: ReportRequest,
        at: Timestamp,
    },
    /// Choose when to try again, or to give up, and write that down.
    ScheduleRetry { reason: StopReason },
    /// Wait for a report, a decision or a retry's time; hold nothing.
    Wait,
    /// Nothing: the run is over.
    Rest,
}

impl Action {
    /// True when performing it waits for nothing outside.
    pub(crate) const fn is_immediate(&self) -> bool {
        match self {
            Self::Record(_) | Self::ScheduleRetry { .. } | Self::Wait | Self::Rest => true,
            Self::OpenWorkspace { .. }
            | Self::AskModel { .. }
            | Self::CallTool { .. }
            | Self::TakeSnapshot
            | Self::SendReport { .. } => false,
        }
    }
}

pub(super) fn record_turn(state: &RunState) -> Action {
    let turns = u32::try_from(state.turns.len()).unwrap_or(u32::MAX);
    Action::Record(Fact::ModelRequested {
        id: state.next_id(),
        turn: turns.saturating_add(1),
    })
}

pub(super) fn request_tool(state: &RunState, call: &Call) -> Action {
    Action::Record(Fact::ToolRequested {
        id: state.next_id(),
        call: call.call.clone(),
        repository: None,
    })
}

/// Answers a call from here, in two facts like every other call.
pub(super) fn answer(state: &RunState, call: &Call, result: ToolResult) -> Action {
    match &call.state {
        CallState::Running { id, .. } => Action::Record(Fact::ToolFinished {
            id: id.clone(),
            result,
        }),
        CallState::Waiting | CallState::Finished { .. } => request_tool(state, call),
    }
}

pub(super) fn ask(state: &RunState, request: ReportRequest, answers: Option<&Call>) -> Action {
    let answers = answers.map(|call| call.call.id.clone());
    Action::Record(Fact::ReportRequested {
        id: state.next_id().into(),
        request,
        answers,
    })
}

pub(super) fn park(state: &RunState, waits_for: WaitsFor) -> Action {
    if state.parked == Some(waits_for) {
        return Action::Wait;
    }
    Action::Record(Fact::Parked { waits_for })
}

/// Tells the ticket why the run ends; the end itself follows once that is sent.
pub(super) fn close(state: &RunState, reason: StopReason) -> Action {
    Action::Record(closing(state, reason))
}

/// The first fact of a run's end. Nobody waits for a triage, so nobody is told of its end.
pub(super) fn closing(state: &RunState, reason: StopReason) -> Fact {
    if matches!(state.goal, Goal::Triage(_)) {
        return Fact::RunFinished { reason };
    }
    let work = state.work();
    let pull_request = work.pull_request.clone();
    let branch = match (&pull_request, &work.pushed, state.request()) {
        (None, Some((branch, _)), Some(request)) => Some(BranchRef {
            repository: request.repository.clone(),
            branch: branch.clone(),
        }),
        _ => None,
    };
    Fact::ReportRequested {
        id: state.next_id().into(),
        request: ReportRequest::RunStopped {
            job: state.job(),
            reason,
            pull_request,
            branch,
        },
        answers: None,
    }
}

pub(super) fn finish(reason: StopReason) -> Action {
    Action::Record(Fact::RunFinished { reason })
}
