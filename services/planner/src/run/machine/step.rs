//! Actions of a run, and the steps that all jobs share.

use domain::check::CheckSpec;
use domain::{
    BranchRef, CallId, Fact, OutOfScopeFile, OutboundAction, OutboundId, OutboundOutcome, StopReason,
    Timestamp, ToolCall, WaitCondition, WorkspaceSnapshot, report,
};

use serde_json::Value;

use super::{
    DialogSpec, PlannerRunState, RetryWait, RunStep, TurnCall, TurnCallState, budget, context, repetition,
};

/// Next action of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunAction {
    /// Writes a fact; nothing outside changes.
    Record(Fact),
    /// Opens the workspace at an executor.
    OpenWorkspace { id: CallId },
    /// Reads the limits of the run and records them.
    SetLimits,
    /// Requests a reply from the model.
    AskModel { id: CallId },
    /// Requests a summary of a conversation's first turns from a model.
    SumUp { id: CallId },
    /// Runs a tool at the executor.
    CallTool {
        id: CallId,
        call: ToolCall,
        at: Timestamp,
    },
    /// Searches for code that matches the ticket.
    FindCode,
    /// Reads the effort of similar work.
    Forecast,
    /// Searches for commands that may serve as checks.
    FindChecks,
    /// Runs a check in a separate tree.
    RunCheck { id: CallId, check: CheckSpec },
    /// Inspects the change at the executor.
    InspectChange,
    /// Stores the workspace's changes.
    TakeSnapshot,
    /// Restores an earlier state of the change in the workspace.
    GoBack { snapshot: WorkspaceSnapshot },
    /// Sends a recorded report to the reporter.
    SendReport {
        id: OutboundId,
        request: OutboundAction,
        at: Timestamp,
    },
    /// Answers a tool call in the planner.
    Answer { id: CallId, answer: CallAnswer },
    /// Schedules a retry or gives up, and records that.
    ScheduleRetry { reason: StopReason },
    /// Waits for a report, a decision or a retry, without holding a resource.
    Wait,
    /// Does nothing: the run is finished.
    Rest,
}

impl RunAction {
    /// Returns true if the action waits for nothing outside.
    pub(crate) const fn is_immediate(&self) -> bool {
        match self {
            Self::Record(_) | Self::Answer { .. } | Self::ScheduleRetry { .. } | Self::Wait | Self::Rest => {
                true
            }
            Self::OpenWorkspace { .. }
            | Self::SetLimits
            | Self::AskModel { .. }
            | Self::SumUp { .. }
            | Self::CallTool { .. }
            | Self::FindCode
            | Self::Forecast
            | Self::FindChecks
            | Self::RunCheck { .. }
            | Self::InspectChange
            | Self::TakeSnapshot
            | Self::GoBack { .. }
            | Self::SendReport { .. } => false,
        }
    }
}

/// Planner's answer to a tool call; `prompts` has the wording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallAnswer {
    /// The reply reached its token limit, so its calls may be truncated.
    CutReply,
    /// The arguments are not a JSON object.
    NoObject,
    /// The tool does not exist; names the existing ones.
    UnknownTool { tools: Vec<String> },
    /// The workspace was lost twice while the call ran.
    LostTwice,
    /// An argument is invalid.
    Argument(ArgumentProblem),
    /// A name violates the rules; names the right form.
    Misnamed { right: String },
    /// The work belongs on this branch of its pull request.
    OtherBranch { branch: String },
    /// The end of the work is accepted.
    Noted,
    /// The rest of the budget allows only these tools.
    ExitsOnly { tools: Vec<String> },
    /// The run has already asked its questions.
    AskedAlready,
    /// The file is in a module that this kind of ticket must not change.
    OutOfScope(OutOfScopeFile),
    /// The conversation must not change files.
    ReadOnly,
}

/// Invalid argument of a planner tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentProblem {
    /// The arguments violate the tool's schema; with the problem.
    Malformed(String),
    Title,
    /// The rules require a scope in each commit message, and the call has none.
    Scope,
    Summary,
    Evidence,
    Questions,
    /// The module does not exist; names the existing ones.
    UnknownModule {
        known: Vec<String>,
    },
    Reason,
    /// Criteria of the ticket without a row.
    Criteria(Vec<String>),
    /// Criteria of a pull request's ticket without a verdict.
    Verdicts(Vec<String>),
    /// The commented lines are not a range, or too many.
    Range,
    /// Comments of the review without exactly one reply.
    Replies(Vec<u64>),
    /// The ticket does not contain this quotation.
    Quote(String),
    /// The reason for a decline is missing or invalid.
    Decline,
    /// The repeated ticket is none of these.
    Citation(Vec<String>),
    OneLiner,
    /// A found question lacks its text or answer.
    Found,
    /// No tool result contains this quotation.
    Unseen(String),
    /// The command does not run the changed code.
    Demonstration,
    Plan,
    /// The plan of a discussion has no issues, too many, or empty ones.
    Issues {
        /// Maximum that the rules allow.
        most: usize,
    },
    /// The change does not add the commented line: file and line.
    NotAdded(String, u32),
    /// The suggestion does not replace its lines.
    Suggestion,
    /// The objection lacks a file of the change, a trigger or a reason.
    Objection,
    NoLabels,
    /// No shown ticket has this key; names the shown ones.
    UnknownTicket(Vec<String>),
    /// The rules do not allow this choice.
    UnknownChoice {
        field: String,
        value: String,
        allowed: Vec<String>,
    },
    /// The ticket is split into too few, too many or empty parts, or it repeats another one.
    Parts {
        /// Maximum that the rules allow.
        most: usize,
    },
}

/// Starts the next turn of a conversation. Shortening and hints come first.
pub(crate) fn record_turn(state: &PlannerRunState, dialog: &DialogSpec) -> RunAction {
    // Limits are pinned before the first model call: a change of settings does not affect a run.
    if state.limits.is_none() {
        return RunAction::SetLimits;
    }
    let room = context::next_context_step(state, dialog);
    if let Some(fact) = context::context_fact(state, dialog, &room) {
        return RunAction::Record(fact);
    }
    if let Some(id) = state.summary_under_way(dialog) {
        return RunAction::SumUp { id: id.clone() };
    }
    // Hints are facts, so a repeated call shows the model the same text.
    let hint = budget::budget_hint(state, dialog).or_else(|| repetition::repetition_hint(state, dialog));
    if let Some(hint) = hint {
        let phase = dialog.phase;
        return RunAction::Record(Fact::Hinted { phase, hint });
    }
    let round = dialog.round(state);
    let turns = state.turns_of(dialog).len();
    RunAction::Record(Fact::ModelRequested {
        id: state.next_id(),
        turn: u32::try_from(turns).unwrap_or(u32::MAX).saturating_add(1),
        phase: dialog.phase,
        round,
        role: dialog.role,
    })
}

/// Returns the next step of a call at the executor; `own` for a call of the planner.
pub(crate) fn run_tool(state: &PlannerRunState, call: &TurnCall, own: bool) -> RunAction {
    match &call.state {
        TurnCallState::Running { id, at } => RunAction::CallTool {
            id: id.clone(),
            call: call.call.clone(),
            at: *at,
        },
        TurnCallState::Waiting | TurnCallState::Finished { .. } => {
            request_tool(state, call.call.clone(), own)
        }
    }
}

/// Starts a call of the planner.
pub(crate) fn start_own_call(state: &PlannerRunState, name: &str, input: &Value) -> RunAction {
    let call = ToolCall {
        id: format!("own_{}", state.position),
        name: name.to_owned(),
        input: input.clone(),
    };
    request_tool(state, call, true)
}

/// Continues a call of the planner; after a lost workspace it runs again.
pub(crate) fn resume_call(state: &PlannerRunState, call: &TurnCall) -> RunStep {
    if call.is_deadly() {
        return RunStep::Retry(StopReason::WorkspaceUnavailable {
            detail: call.call.name.clone(),
        });
    }
    run_tool(state, call, true).into()
}

fn request_tool(state: &PlannerRunState, call: ToolCall, own: bool) -> RunAction {
    RunAction::Record(Fact::ToolRequested {
        id: state.next_id(),
        call,
        own,
        repository: None,
    })
}

/// Answers a call in the planner, in two facts like every other call.
pub(crate) fn answer_call(state: &PlannerRunState, call: &TurnCall, answer: CallAnswer) -> RunAction {
    match &call.state {
        TurnCallState::Running { id, .. } => RunAction::Answer {
            id: id.clone(),
            answer,
        },
        TurnCallState::Waiting | TurnCallState::Finished { .. } => {
            request_tool(state, call.call.clone(), false)
        }
    }
}

pub(crate) fn request_report(
    state: &PlannerRunState,
    request: OutboundAction,
    answers: Option<&TurnCall>,
) -> RunAction {
    let answers = answers.map(|call| call.call.id.clone());
    RunAction::Record(Fact::ReportRequested {
        id: state.next_id().into(),
        request,
        answers,
    })
}

pub(crate) fn park_run(state: &PlannerRunState, waits_for: WaitCondition) -> RunAction {
    // The journal already has the entry; a second entry would be noise.
    if state.parked == Some(waits_for) {
        return RunAction::Wait;
    }
    RunAction::Record(Fact::Parked { waits_for })
}

/// Waits for the outcome of a report; a failed one is retried later.
pub(crate) fn await_report(state: &PlannerRunState, id: &OutboundId, waits_for: WaitCondition) -> RunStep {
    match state.report(id).and_then(|report| report.outcome.as_ref()) {
        Some(OutboundOutcome::Failed { detail }) => RunStep::Retry(report_failed(detail)),
        Some(OutboundOutcome::Done(_) | OutboundOutcome::Refused(_)) | None => {
            park_run(state, waits_for).into()
        }
    }
}

pub(crate) fn report_failed(detail: &str) -> StopReason {
    StopReason::ReportFailed {
        detail: detail.to_owned(),
    }
}

impl PlannerRunState {
    /// Returns the fact that reports the end of the run to the ticket.
    pub(crate) fn stopped(&self, reason: StopReason) -> Fact {
        let work = self.work();
        let pull_request = work.pull_request.clone();
        let branch = match (&pull_request, &work.pushed, self.request()) {
            // A pushed branch without a pull request is work that the user can continue.
            (None, Some((branch, _)), Some(request)) => Some(BranchRef {
                repository: request.repository.clone(),
                branch: branch.clone(),
            }),
            _ => None,
        };
        Fact::ReportRequested {
            id: self.next_id().into(),
            request: OutboundAction::RunStopped(report::RunStopped {
                job: self.job(),
                reason,
                pull_request,
                branch,
            }),
            answers: None,
        }
    }
}

impl RetryWait {
    /// Returns the report of the retry to the ticket.
    pub(crate) fn report(&self, job: domain::Job) -> OutboundAction {
        OutboundAction::RetryScheduled(report::RetryScheduled {
            job,
            reason: self.reason.clone(),
            attempt: self.attempt,
            most: self.most,
            due: self.due,
        })
    }
}
