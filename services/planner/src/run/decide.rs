//! What a run does next.

use domain::{
    Approval, CallId, Fact, JobRequest, PushBranch, ReplyStop, ReportId, ReportOutcome, ReportRequest,
    Snapshot, StopReason, Timestamp, ToolCall, ToolResult, Verdict, WorkspaceInfo,
};

use super::retry::{await_report, fail, model_failed, report_failed, wait_for_retry};
use super::state::{Call, CallState, Goal, RunState, Turn, Workspace};
use super::tools::{self, Route};
use super::triage::triage;

/// How often the model is reminded that its change is not a pull request yet.
const REMINDERS: usize = 2;
const SUMMARY_CHARS: usize = 4000;
const MOST_TURNS: u32 = 50;

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
    /// Fetch the diff and ask a person for a decision about it.
    AskDecision { answers: String },
    /// Hand a recorded report to the reporter.
    SendReport {
        id: ReportId,
        request: ReportRequest,
        at: Timestamp,
    },
    /// Choose when to try again, and write that down.
    ScheduleRetry { attempt: u32, reason: StopReason },
    /// Wait for a report, a decision or a retry's time; hold nothing.
    Wait,
    /// Nothing: the run is over.
    Rest,
}

/// The next step of a run; a journal that was cut anywhere gives the step that was cut.
pub(crate) fn decide(state: &RunState) -> Action {
    if state.finished.is_some() {
        return Action::Rest;
    }
    if let Some(report) = state.unsent.first().and_then(|id| state.report(id)) {
        return Action::SendReport {
            id: report.id.clone(),
            request: report.request.clone(),
            at: report.at,
        };
    }
    if let Some(reason) = state.closing() {
        return finish(reason.clone());
    }
    if let (Some(retry), None) = (&state.retry, &state.stop) {
        return wait_for_retry(state, retry);
    }
    match &state.goal {
        Goal::Tell(_, request) => tell(state, request),
        Goal::Unsupported(job) => close(
            state,
            StopReason::ReportRefused {
                detail: format!("the job {job} is not available yet"),
            },
        ),
        Goal::Implement(request) => implement(state, request),
        Goal::Triage(request) => triage(state, request),
    }
}

fn tell(state: &RunState, request: &ReportRequest) -> Action {
    match state.reports.first().map(|report| &report.outcome) {
        None => ask(state, request.clone(), None),
        Some(None) => park(state, "report"),
        Some(Some(ReportOutcome::Done(_))) => finish(StopReason::Completed),
        Some(Some(ReportOutcome::Refused { detail })) => finish(StopReason::ReportRefused {
            detail: detail.clone(),
        }),
        Some(Some(ReportOutcome::Failed { detail })) => fail(state, report_failed(detail)),
    }
}

fn implement(state: &RunState, request: &JobRequest) -> Action {
    if let Some(by) = &state.stop {
        return close(state, StopReason::Stopped { by: by.clone() });
    }
    if state.reports.is_empty() {
        let started = ReportRequest::WorkStarted {
            job: request.job,
            repository: request.repository.clone(),
        };
        return ask(state, started, None);
    }
    match &state.workspace {
        Workspace::Absent => Action::Record(Fact::WorkspaceRequested { id: state.next_id() }),
        Workspace::Requested(id) => Action::OpenWorkspace { id: id.clone() },
        Workspace::Failed {
            detail, setup: true, ..
        } => close(
            state,
            StopReason::SetupFailed {
                log_tail: last_chars(detail, SUMMARY_CHARS),
            },
        ),
        Workspace::Failed {
            detail, setup: false, ..
        } => fail(
            state,
            StopReason::WorkspaceUnavailable {
                detail: detail.clone(),
            },
        ),
        Workspace::Open(info) => match state.turns.last() {
            None => next_turn(state, request),
            Some(turn) => carry_on(state, request, info, turn),
        },
    }
}

fn carry_on(state: &RunState, request: &JobRequest, info: &WorkspaceInfo, turn: &Turn) -> Action {
    if let Some(trouble) = &turn.failed {
        return model_failed(state, trouble);
    }
    let Some(reply) = &turn.reply else {
        return Action::AskModel { id: turn.id.clone() };
    };
    if let Some(call) = state.open_call() {
        return tool_step(state, request, info, call, reply.stop);
    }
    if state.dirty {
        return Action::TakeSnapshot;
    }
    match reply.stop {
        ReplyStop::Refusal => close(
            state,
            StopReason::ModelFailed {
                detail: "the model refused to work on this ticket".to_owned(),
            },
        ),
        ReplyStop::MaxTokens => next_turn(state, request),
        ReplyStop::EndTurn | ReplyStop::ToolUse if turn.calls.is_empty() => {
            ended(state, request, &reply.text())
        }
        ReplyStop::EndTurn | ReplyStop::ToolUse => next_turn(state, request),
    }
}

/// The model says that it is done.
fn ended(state: &RunState, request: &JobRequest, words: &str) -> Action {
    if state.pull_request.is_some() {
        return finish(StopReason::Completed);
    }
    let changed = state.snapshot.as_ref().is_some_and(|kept| kept.files_changed > 0);
    let mut summary: String = words.chars().take(SUMMARY_CHARS).collect();
    if changed {
        if reminders(state) < REMINDERS {
            return next_turn(state, request);
        }
        summary = format!("Files were changed, but no pull request was opened. {summary}")
            .chars()
            .take(SUMMARY_CHARS)
            .collect();
    }
    close(state, StopReason::NoChange { summary })
}

/// How many earlier turns ended without a tool call and were answered with a reminder.
fn reminders(state: &RunState) -> usize {
    let earlier = &state.turns[..state.turns.len().saturating_sub(1)];
    earlier
        .iter()
        .filter(|turn| turn.calls.is_empty() && stopped_with(turn, ReplyStop::EndTurn))
        .count()
}

/// True when a turn's reply stopped for this reason.
pub(super) fn stopped_with(turn: &Turn, stop: ReplyStop) -> bool {
    turn.reply.as_ref().is_some_and(|reply| reply.stop == stop)
}

fn next_turn(state: &RunState, request: &JobRequest) -> Action {
    let limit = request.rules.agent.max_turns.clamp(1, MOST_TURNS);
    if state.turns.len() >= limit as usize {
        return close(state, StopReason::TurnLimit { turns: limit });
    }
    record_turn(state)
}

pub(super) fn record_turn(state: &RunState) -> Action {
    let turns = u32::try_from(state.turns.len()).unwrap_or(u32::MAX);
    Action::Record(Fact::ModelRequested {
        id: state.next_id(),
        turn: turns.saturating_add(1),
    })
}

fn tool_step(
    state: &RunState,
    request: &JobRequest,
    info: &WorkspaceInfo,
    call: &Call,
    stop: ReplyStop,
) -> Action {
    if let Some(id) = &call.report {
        return await_report(state, id, "report");
    }
    match tools::route(&call.call, info, stop) {
        Route::Executor => match &call.state {
            CallState::Running { id, at } => Action::CallTool {
                id: id.clone(),
                call: call.call.clone(),
                at: *at,
            },
            CallState::Waiting | CallState::Finished { .. } => request_tool(state, call),
        },
        Route::Answer(result) => answer(state, call, result),
        Route::Push => push(state, request, call),
        Route::OpenPullRequest { title, body } => open_pull_request(state, request, call, title, body),
    }
}

fn request_tool(state: &RunState, call: &Call) -> Action {
    Action::Record(Fact::ToolRequested {
        id: state.next_id(),
        call: call.call.clone(),
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

fn push(state: &RunState, request: &JobRequest, call: &Call) -> Action {
    if state.dirty {
        return Action::TakeSnapshot;
    }
    let Some(wanted) = state
        .snapshot
        .as_ref()
        .and_then(|kept| to_push(state, request, kept))
    else {
        return answer(
            state,
            call,
            ToolResult::error(
                "There is no commit to push. Create a branch with create_branch and commit with commit_changes first.",
            ),
        );
    };
    if wanted.expected.as_ref() == Some(&wanted.head) {
        return answer(
            state,
            call,
            ToolResult::ok("The branch is on the remote with this head already."),
        );
    }
    if request.rules.agent.approval == Approval::BeforePush && !state.approved {
        return gate(state, call);
    }
    ask(state, ReportRequest::PushBranch(wanted), Some(call))
}

fn to_push(state: &RunState, request: &JobRequest, kept: &Snapshot) -> Option<PushBranch> {
    let branch = kept.branch.clone()?;
    let expected = state
        .pushed
        .as_ref()
        .filter(|(pushed, _)| *pushed == branch)
        .map(|(_, head)| head.clone());
    Some(PushBranch {
        repository: request.repository.clone(),
        branch,
        base: kept.base.clone(),
        head: kept.head.clone().filter(|head| *head != kept.base)?,
        pack: kept.pack.clone(),
        expected,
    })
}

fn gate(state: &RunState, call: &Call) -> Action {
    let Some((decision, by)) = &state.decision else {
        return match &call.gate {
            None => Action::AskDecision {
                answers: call.call.id.clone(),
            },
            Some(asked) => await_report(state, asked, "decision"),
        };
    };
    match decision.verdict {
        Verdict::Reject => close(state, StopReason::Rejected { by: by.clone() }),
        Verdict::Approve | Verdict::Revise => answer(
            state,
            call,
            ToolResult::error(format!(
                "Not pushed: a person asks for changes first. Make them, commit, and call push_branch again.\n\n{}",
                decision.feedback
            )),
        ),
    }
}

fn open_pull_request(
    state: &RunState,
    request: &JobRequest,
    call: &Call,
    title: String,
    body: String,
) -> Action {
    if let Some(opened) = &state.pull_request {
        return answer(
            state,
            call,
            ToolResult::ok(format!("The pull request is open already: {}", opened.url)),
        );
    }
    let Some((branch, _)) = &state.pushed else {
        let words = "The branch is not on the remote yet. Call push_branch first.";
        return answer(state, call, ToolResult::error(words));
    };
    let wanted = ReportRequest::OpenPullRequest {
        repository: request.repository.clone(),
        branch: branch.clone(),
        base_branch: request.rules.target_branch().to_owned(),
        title,
        body,
    };
    ask(state, wanted, Some(call))
}

pub(super) fn ask(state: &RunState, request: ReportRequest, answers: Option<&Call>) -> Action {
    let answers = answers.map(|call| call.call.id.clone());
    Action::Record(Fact::ReportRequested {
        id: state.next_id().into(),
        request,
        answers,
    })
}

pub(super) fn park(state: &RunState, waits_for: &str) -> Action {
    if state.parked.as_deref() == Some(waits_for) {
        return Action::Wait;
    }
    Action::Record(Fact::Parked {
        waits_for: waits_for.to_owned(),
    })
}

/// Tells the ticket why the run ends; the end itself follows once that is sent. Nobody waits for a triage, so nobody is
/// told of its end.
pub(super) fn close(state: &RunState, reason: StopReason) -> Action {
    if matches!(state.goal, Goal::Triage(_)) {
        return finish(reason);
    }
    let pull_request = state.pull_request.clone();
    ask(
        state,
        ReportRequest::RunStopped {
            job: state.job(),
            reason,
            pull_request,
        },
        None,
    )
}

pub(super) fn finish(reason: StopReason) -> Action {
    Action::Record(Fact::RunFinished { reason })
}

fn last_chars(text: &str, most: usize) -> String {
    text.chars()
        .skip(text.chars().count().saturating_sub(most))
        .collect()
}
