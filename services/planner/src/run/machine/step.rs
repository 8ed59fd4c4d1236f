//! Steps that all jobs share.

use domain::{
    BranchRef, CallId, Fact, McpTool, OutboundAction, OutboundId, OutboundOutcome, OutboundRefusal,
    StopReason, ToolCall, WaitCondition, report,
};

use serde_json::Value;

use super::{
    AttachmentRead, CallAnswer, DialogSpec, PlannerRunState, RetryWait, RunAction, RunStep, TurnCall, budget,
    context, repetition,
};

// Reads of one reply that run at the same time.
const MOST_READS: usize = 8;

/// Starts the next turn of a conversation. Shortening and hints come first.
pub(crate) fn record_turn(state: &PlannerRunState, dialog: &DialogSpec) -> RunAction {
    // Limits are pinned before the first model call: a change of settings does not affect a run.
    if state.budget().limits().is_none() {
        return RunAction::SetLimits;
    }
    let step = context::next_context_step(state, dialog);
    if let Some(fact) = context::context_fact(state, dialog, &step) {
        return RunAction::Record(fact);
    }
    let known = dialog.conversation(state);
    if let Some(pending) = known.and_then(|known| known.context.pending.as_ref()) {
        return RunAction::SumUp {
            id: pending.id.clone(),
        };
    }
    // Hints are facts, so a repeated call shows the model the same text.
    let hint = budget::budget_hint(state, dialog).or_else(|| repetition::repetition_hint(state, dialog));
    if let Some(hint) = hint {
        let phase = dialog.phase;
        return RunAction::Record(Fact::Hinted { phase, hint });
    }
    let round = dialog.round(state);
    let turns = dialog.turns(state).len();
    RunAction::Record(Fact::ModelRequested {
        id: state.next_id(),
        turn: u32::try_from(turns).unwrap_or(u32::MAX).saturating_add(1),
        phase: dialog.phase,
        round,
        role: dialog.role,
    })
}

/// Returns the next step of a call at the executor; `own` for a call of the planner. A call that lost its
/// workspace twice gets an answer instead.
pub(crate) fn run_tool(state: &PlannerRunState, call: &TurnCall, own: bool) -> RunAction {
    if call.is_deadly() {
        return answer_call(state, call, CallAnswer::LostTwice);
    }
    match call.running() {
        Some((id, at)) => RunAction::CallTool {
            id: id.clone(),
            call: call.call.clone(),
            at,
        },
        None => request_tool(state, call.call.clone(), own),
    }
}

/// Returns the next step of a call at an MCP server.
pub(crate) fn run_mcp_tool(
    state: &PlannerRunState,
    call: &TurnCall,
    (server, tool): (&str, &McpTool),
) -> RunAction {
    match call.running() {
        // Two calls may have two effects, so only a call without effects is repeated.
        Some(_) if call.is_interrupted && !tool.spec.read_only => {
            let server = server.to_owned();
            answer_call(state, call, CallAnswer::UnknownOutcome { server })
        }
        Some((id, _)) => RunAction::CallMcpTool {
            id: id.clone(),
            server: server.to_owned(),
            tool: tool.clone(),
            call: call.call.clone(),
        },
        None => RunAction::Record(Fact::ToolRequested {
            id: state.next_id(),
            call: call.call.clone(),
            own: false,
            repository: None,
            server: Some(server.to_owned()),
        }),
    }
}

/// Place of a tool call: the model call of its reply, and its number in the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallPlace {
    pub(crate) turn: CallId,
    pub(crate) number: usize,
}

/// Returns the place of the open call, if the model made it.
pub(crate) fn find_open_place(state: &PlannerRunState) -> Option<CallPlace> {
    let turn = state.conversation().last_turn()?;
    let number = turn.calls.iter().position(TurnCall::is_open)?;
    Some(CallPlace {
        turn: turn.id.clone(),
        number,
    })
}

/// Returns the reads that follow the open call directly, if it is a read itself.
pub(crate) fn list_following_reads(state: &PlannerRunState) -> Vec<(CallPlace, &ToolCall)> {
    let (Some(open), Some(info), Some(turn)) = (
        find_open_place(state),
        state.source().open_workspace(),
        state.conversation().last_turn(),
    ) else {
        return Vec::new();
    };
    let is_read = |call: &TurnCall| {
        let mut tools = info.tools.iter();
        call.call.input.is_object() && tools.any(|tool| tool.name == call.call.name && tool.read_only)
    };
    let reads = turn.calls.iter().enumerate().skip(open.number);
    let reads = reads.take_while(|(_, call)| is_read(call)).take(MOST_READS);
    let following = reads.skip(1).map(|(number, call)| {
        let place = CallPlace {
            turn: open.turn.clone(),
            number,
        };
        (place, &call.call)
    });
    following.collect()
}

/// Starts a call of the planner.
pub(crate) fn start_own_call(state: &PlannerRunState, name: &str, input: &Value) -> RunAction {
    let call = ToolCall {
        id: format!("own_{}", state.journal.position),
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
        server: None,
    })
}

/// Answers a call in the planner, in two facts like every other call.
pub(crate) fn answer_call(state: &PlannerRunState, call: &TurnCall, answer: CallAnswer) -> RunAction {
    match call.running() {
        Some((id, _)) => RunAction::Answer {
            id: id.clone(),
            answer,
        },
        None => request_tool(state, call.call.clone(), false),
    }
}

/// Reads a part of an attachment, in two facts like every other call.
pub(crate) fn read_attachment(state: &PlannerRunState, call: &TurnCall, read: AttachmentRead) -> RunAction {
    match call.running() {
        Some((id, _)) => RunAction::ReadAttachment { id: id.clone(), read },
        None => request_tool(state, call.call.clone(), false),
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
    if state.lifecycle().parked() == Some(waits_for) {
        return RunAction::Wait;
    }
    RunAction::Record(Fact::Parked { waits_for })
}

/// Waits for the outcome of a report; a failed one is retried later.
pub(crate) fn await_report(state: &PlannerRunState, id: &OutboundId, waits_for: WaitCondition) -> RunStep {
    match state
        .delivery()
        .report(id)
        .and_then(|report| report.outcome.as_ref())
    {
        Some(OutboundOutcome::Failed { detail }) => RunStep::Retry(StopReason::ReportFailed {
            detail: detail.clone(),
        }),
        Some(OutboundOutcome::Done(_) | OutboundOutcome::Refused(_)) | None => {
            park_run(state, waits_for).into()
        }
    }
}

/// Requests a report once and waits for its outcome; over when it is performed. `refused` returns the step
/// after a refusal.
pub(crate) fn report_once(
    state: &PlannerRunState,
    is_it: impl Fn(&OutboundAction) -> bool,
    request: impl FnOnce() -> OutboundAction,
    refused: impl FnOnce(&OutboundRefusal) -> RunStep,
) -> RunStep {
    let Some(known) = state.delivery().last_report(is_it) else {
        return request_report(state, request(), None).into();
    };
    match &known.outcome {
        Some(OutboundOutcome::Done(_)) => RunStep::Over,
        Some(OutboundOutcome::Refused(refusal)) => refused(refusal),
        Some(OutboundOutcome::Failed { .. }) | None => await_report(state, &known.id, WaitCondition::Report),
    }
}

/// Ends the run with the refusal of its report; the requester already knows it.
pub(crate) fn finish_refused(refusal: &OutboundRefusal) -> RunStep {
    RunStep::Finish(StopReason::ReportRefused(refusal.clone()))
}

/// Returns the fact that reports the end of the run to the ticket.
pub(crate) fn report_end(state: &PlannerRunState, reason: StopReason) -> Fact {
    let work = state.source().work();
    let pull_request = work.pull_request.clone();
    let branch = match (&pull_request, &work.pushed, state.request()) {
        // A pushed branch without a pull request is work that the user can continue.
        (None, Some((branch, _)), Some(request)) => Some(BranchRef {
            repository: request.repository.clone(),
            branch: branch.clone(),
        }),
        _ => None,
    };
    Fact::ReportRequested {
        id: state.next_id().into(),
        request: OutboundAction::RunStopped(report::RunStopped {
            job: state.job(),
            reason,
            pull_request,
            branch,
        }),
        answers: None,
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
