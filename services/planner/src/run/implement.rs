//! From a ticket to a pull request: work with the model in a workspace.

use domain::{Fact, JobRequest, ReplyStop, ReportRequest, StopReason, ToolResult, WaitsFor, WorkspaceInfo};

use super::delivery::{open_pull_request, push};
use super::retry::{await_report, fail, model_failed};
use super::state::{Call, CallState, RunState, Turn};
use super::step::{Action, answer, ask, close, finish, record_turn, request_tool};
use super::tools::{self, Route};
use super::work::Workspace;
use crate::prompts;

/// How often the model is reminded that its change is not a pull request yet.
const REMINDERS: usize = 2;
const SUMMARY_CHARS: usize = 4000;
const MOST_TURNS: u32 = 50;

/// The next step of an implementation.
pub(super) fn implement(state: &RunState, request: &JobRequest) -> Action {
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
    match &state.work().workspace {
        Workspace::Absent => Action::Record(Fact::WorkspaceRequested {
            id: state.next_id(),
            repository: None,
        }),
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
        } => fail(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
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
    if state.work().dirty {
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
    if state.has_unread_news() && state.turns.len() < turn_limit(request) as usize {
        return record_turn(state);
    }
    if state.work().pull_request.is_some() {
        return finish(StopReason::Completed);
    }
    let changed = state
        .work()
        .snapshot
        .as_ref()
        .is_some_and(|kept| kept.files_changed > 0);
    let mut summary = words.to_owned();
    if changed {
        if reminders(state) < REMINDERS {
            return next_turn(state, request);
        }
        summary = format!("Files were changed, but no pull request was opened. {summary}");
    }
    if let Some(lacking) = state.work().lacking() {
        summary = format!("{lacking} {summary}");
    }
    let summary = summary.chars().take(SUMMARY_CHARS).collect();
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
    let limit = turn_limit(request);
    if state.turns.len() >= limit as usize {
        return close(state, StopReason::TurnLimit { turns: limit });
    }
    record_turn(state)
}

fn turn_limit(request: &JobRequest) -> u32 {
    request.rules.agent.max_turns.clamp(1, MOST_TURNS)
}

fn tool_step(
    state: &RunState,
    request: &JobRequest,
    info: &WorkspaceInfo,
    call: &Call,
    stop: ReplyStop,
) -> Action {
    if let Some(id) = &call.report {
        return await_report(state, id, WaitsFor::Report);
    }
    match tools::route(&call.call, info, stop) {
        Route::Executor if call.is_deadly() => answer(state, call, ToolResult::error(prompts::LOST_TWICE)),
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

fn last_chars(text: &str, most: usize) -> String {
    text.chars()
        .skip(text.chars().count().saturating_sub(most))
        .collect()
}
