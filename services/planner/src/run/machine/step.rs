//! The next step of a run, and the steps that every job is made of.

use domain::check::CheckSpec;
use domain::{
    BranchRef, CallId, Fact, Outside, ReportId, ReportOutcome, ReportRequest, Snapshot, StopReason,
    Timestamp, ToolCall, WaitsFor, report,
};

use serde_json::Value;

use super::{Call, CallState, DialogSpec, Retry, RunState, Step, budget, context, repetition};

/// The next step of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Write this down; nothing outside changes.
    Record(Fact),
    /// Ask an executor for the workspace.
    OpenWorkspace { id: CallId },
    /// Look up what the run may spend, and write that down.
    SetLimits,
    /// Ask the model.
    AskModel { id: CallId },
    /// Ask a model to sum up the first turns of a conversation.
    SumUp { id: CallId },
    /// Let the executor run a tool.
    CallTool {
        id: CallId,
        call: ToolCall,
        at: Timestamp,
    },
    /// Look up code that the ticket may be about.
    FindCode,
    /// Look up what such work took before.
    Forecast,
    /// Look for commands that may serve as checks.
    FindChecks,
    /// Run a check in a tree of its own.
    RunCheck { id: CallId, check: CheckSpec },
    /// Look at what the change amounts to.
    InspectChange,
    /// Keep the workspace's changes.
    TakeSnapshot,
    /// Give the workspace an earlier state of the change.
    GoBack { snapshot: Snapshot },
    /// Hand a recorded report to the reporter.
    SendReport {
        id: ReportId,
        request: ReportRequest,
        at: Timestamp,
    },
    /// Answer a tool call from here.
    Answer { id: CallId, answer: Answer },
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

/// What the planner has to say to a tool call; the prompts have the words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The reply was cut at its token limit, so its calls may be as well.
    CutReply,
    /// The arguments are no JSON object.
    NoObject,
    /// There is no such tool; those that there are.
    UnknownTool { tools: Vec<String> },
    /// The workspace was lost twice while the call ran.
    LostTwice,
    /// What is wrong with an argument.
    Argument(Argument),
    /// A name does not follow the rules; the right form.
    Misnamed { right: String },
    /// The work belongs on the branch of its pull request, which is this.
    OtherBranch { branch: String },
    /// The exit is taken.
    Noted,
    /// There is not enough left for anything but these tools.
    ExitsOnly { tools: Vec<String> },
    /// People were asked once already.
    AskedAlready,
    /// The file is in a module that this kind of ticket may not change.
    OutOfScope(Outside),
    /// Nothing may be changed in this conversation.
    ReadOnly,
}

/// A wrong argument of one of the planner's tools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// Why the arguments do not fit the tool's schema.
    Malformed(String),
    Title,
    /// The rules want a scope in each commit message, and the call names none.
    Scope,
    Summary,
    Evidence,
    Questions,
    /// There is no such module; those that there are.
    UnknownModule {
        known: Vec<String>,
    },
    Reason,
    /// What the ticket asks for and no row is about.
    Criteria(Vec<String>),
    /// What the ticket of a pull request asks for and no verdict is about.
    Verdicts(Vec<String>),
    /// A comment on lines that are no range, or too many.
    Range,
    /// Not every comment of the review has one reply; those that have none.
    Replies(Vec<u64>),
    /// A quotation that the ticket does not have.
    Quote(String),
    /// The reason of a decision to decline.
    Decline,
    /// What the ticket is said to repeat is none of these.
    Citation(Vec<String>),
    OneLiner,
    /// A question that was found without its words, or without an answer.
    Found,
    /// A quotation that no tool has shown.
    Unseen(String),
    /// A command that shows nothing of what the code does.
    Demonstration,
    Plan,
    /// The plan of a discussion has no issues, too many, or some that say nothing.
    Issues {
        /// How many the rules allow.
        most: usize,
    },
    /// A comment on a line that the change does not add: the file and the line.
    NotAdded(String, u32),
    /// A suggestion that is no code for its one place.
    Suggestion,
    /// An objection without a file of the change, a trigger or a reason.
    Objection,
    NoLabels,
    /// No ticket that was shown has this key; with those that were.
    UnknownTicket(Vec<String>),
    /// What was chosen for something is none of what the rules allow.
    UnknownChoice {
        field: String,
        value: String,
        allowed: Vec<String>,
    },
    /// The parts of a ticket are too few, too many or say nothing, or it has none because it repeats another.
    Parts {
        /// How many the rules allow.
        most: usize,
    },
}

/// Begins the next turn of a conversation. The model is told first what it has to know.
pub(crate) fn record_turn(state: &RunState, dialog: &DialogSpec) -> Action {
    if state.limits.is_none() {
        return Action::SetLimits;
    }
    let room = context::room(state, dialog);
    if let Some(fact) = context::fact(state, dialog, &room) {
        return Action::Record(fact);
    }
    if let Some(id) = state.summary_under_way(dialog) {
        return Action::SumUp { id: id.clone() };
    }
    let hint = budget::hint(state, dialog).or_else(|| repetition::hint(state, dialog));
    if let Some(hint) = hint {
        let phase = dialog.phase;
        return Action::Record(Fact::Hinted { phase, hint });
    }
    let round = dialog.round(state);
    let turns = state.turns_of(dialog).len();
    Action::Record(Fact::ModelRequested {
        id: state.next_id(),
        turn: u32::try_from(turns).unwrap_or(u32::MAX).saturating_add(1),
        phase: dialog.phase,
        round,
        role: dialog.role,
    })
}

/// The next step of a call that an executor answers; `own` when the planner itself wants it.
pub(crate) fn run_tool(state: &RunState, call: &Call, own: bool) -> Action {
    match &call.state {
        CallState::Running { id, at } => Action::CallTool {
            id: id.clone(),
            call: call.call.clone(),
            at: *at,
        },
        CallState::Waiting | CallState::Finished { .. } => request_tool(state, call.call.clone(), own),
    }
}

/// A call of the planner's own.
pub(crate) fn own_call(state: &RunState, name: &str, input: &Value) -> Action {
    let call = ToolCall {
        id: format!("own_{}", state.position),
        name: name.to_owned(),
        input: input.clone(),
    };
    request_tool(state, call, true)
}

/// Carries a call of the planner's own on; after a lost workspace it runs again.
pub(crate) fn carry_on(state: &RunState, call: &Call) -> Step {
    if call.is_deadly() {
        return Step::Retry(StopReason::WorkspaceUnavailable {
            detail: call.call.name.clone(),
        });
    }
    run_tool(state, call, true).into()
}

fn request_tool(state: &RunState, call: ToolCall, own: bool) -> Action {
    Action::Record(Fact::ToolRequested {
        id: state.next_id(),
        call,
        own,
        repository: None,
    })
}

/// Answers a call from here, in two facts like every other call.
pub(crate) fn answer(state: &RunState, call: &Call, answer: Answer) -> Action {
    match &call.state {
        CallState::Running { id, .. } => Action::Answer {
            id: id.clone(),
            answer,
        },
        CallState::Waiting | CallState::Finished { .. } => request_tool(state, call.call.clone(), false),
    }
}

pub(crate) fn ask(state: &RunState, request: ReportRequest, answers: Option<&Call>) -> Action {
    let answers = answers.map(|call| call.call.id.clone());
    Action::Record(Fact::ReportRequested {
        id: state.next_id().into(),
        request,
        answers,
    })
}

pub(crate) fn park(state: &RunState, waits_for: WaitsFor) -> Action {
    if state.parked == Some(waits_for) {
        return Action::Wait;
    }
    Action::Record(Fact::Parked { waits_for })
}

/// Waits for what a report brings; one that failed is tried again later.
pub(crate) fn await_report(state: &RunState, id: &ReportId, waits_for: WaitsFor) -> Step {
    match state.report(id).and_then(|report| report.outcome.as_ref()) {
        Some(ReportOutcome::Failed { detail }) => Step::Retry(report_failed(detail)),
        Some(ReportOutcome::Done(_) | ReportOutcome::Refused(_)) | None => park(state, waits_for).into(),
    }
}

pub(crate) fn report_failed(detail: &str) -> StopReason {
    StopReason::ReportFailed {
        detail: detail.to_owned(),
    }
}

impl RunState {
    /// Tells the ticket why the run ends.
    pub(crate) fn stopped(&self, reason: StopReason) -> Fact {
        let work = self.work();
        let pull_request = work.pull_request.clone();
        let branch = match (&pull_request, &work.pushed, self.request()) {
            (None, Some((branch, _)), Some(request)) => Some(BranchRef {
                repository: request.repository.clone(),
                branch: branch.clone(),
            }),
            _ => None,
        };
        Fact::ReportRequested {
            id: self.next_id().into(),
            request: ReportRequest::RunStopped(report::RunStopped {
                job: self.job(),
                reason,
                pull_request,
                branch,
            }),
            answers: None,
        }
    }
}

impl Retry {
    /// Tells the ticket when the run is tried again.
    pub(crate) fn report(&self, job: domain::Job) -> ReportRequest {
        ReportRequest::RetryScheduled(report::RetryScheduled {
            job,
            reason: self.reason.clone(),
            attempt: self.attempt,
            most: self.most,
            due: self.due,
        })
    }
}
