//! The model works in the workspace until it finishes or gives up.

use domain::{
    Exit, Fact, Handover, JobRequest, ModelRole, News, Phase, PhaseOutput, ReplyStop, StopReason, ToolStatus,
    WaitsFor,
};

use super::converse::{Progress, converse};
use crate::run::machine::{
    Action, Call, CallResult, CallState, DialogSpec, PhaseSpec, RunState, Step, Turn, park, record_turn,
    stuck,
};
use crate::run::tools::{ask, finish, give_up, widen_scope};

/// How often the model is reminded that its work has no end yet.
const REMINDERS: usize = 2;
const SUMMARY_CHARS: usize = 4000;
const MOST_TURNS: u32 = 50;

const DIALOG: DialogSpec = DialogSpec {
    phase: Phase::Work,
    role: ModelRole::Default,
    has_workspace: true,
    tools: &[finish::TOOL, ask::TOOL, give_up::TOOL, widen_scope::TOOL],
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    match state.exit() {
        Some(Exit::Finished(_) | Exit::CutShort { .. }) => return Step::Over,
        Some(Exit::GaveUp { kind, evidence }) => {
            return Step::Close(StopReason::GivenUp {
                kind: *kind,
                evidence: evidence.clone(),
            });
        }
        None => {}
    }
    let Some(request) = state.request() else {
        return Step::Over;
    };
    match converse(state, &DIALOG) {
        Progress::Step(step) => step,
        Progress::Answered => answered(state, request),
        Progress::Silent(words) => ended(state, request, &words),
    }
}

/// Every call of the last turn has its result: an exit ends the work, a question waits for its answer.
fn answered(state: &RunState, request: &JobRequest) -> Step {
    if is_old(state) {
        return next_turn(state, request);
    }
    let calls = state.last_turn().map_or(&[][..], |turn| &turn.calls);
    let has_time = turns(state).len() < turn_limit(request) as usize;
    if let Some(exit) = calls.iter().find_map(exit)
        && !(state.has_unread_news() && has_time)
    {
        let output = PhaseOutput::Work { exit };
        return Action::Record(Fact::PhaseFinished { output }).into();
    }
    if calls.iter().any(is_question) && !is_answered(state) {
        return park(state, WaitsFor::Answer).into();
    }
    next_turn(state, request)
}

/// True when the run came back after the last turn: what that turn ended with is void.
fn is_old(state: &RunState) -> bool {
    let last = state.returns.last();
    last.is_some_and(|returned| returned.after_turns >= state.turns())
}

/// The exit that a call took.
fn exit(call: &Call) -> Option<Exit> {
    if !is_accepted(call) {
        return None;
    }
    if call.call.name == finish::TOOL.name {
        let handover = finish::parse(&call.call.input).ok()?;
        return Some(Exit::Finished(Box::new(handover)));
    }
    if call.call.name == give_up::TOOL.name {
        let (kind, evidence) = give_up::parse(&call.call.input).ok()?;
        return Some(Exit::GaveUp { kind, evidence });
    }
    None
}

fn is_accepted(call: &Call) -> bool {
    matches!(&call.state, CallState::Finished { result: CallResult::Ran(result), .. } if result.status == ToolStatus::Ok)
}

/// True for a question that is on the ticket.
fn is_question(call: &Call) -> bool {
    let is_asked = matches!(
        &call.state,
        CallState::Finished {
            result: CallResult::Settled(domain::ReportOutcome::Done(_)),
            ..
        }
    );
    call.call.name == ask::TOOL.name && is_asked
}

/// Somebody who may instruct has said something since the question.
fn is_answered(state: &RunState) -> bool {
    let asked = state.turns();
    state.news.iter().any(|heard| {
        let News::Comment { comment, .. } = &heard.news;
        heard.after_turns >= asked && comment.may_instruct
    })
}

/// The model says nothing more, although it took no exit.
fn ended(state: &RunState, request: &JobRequest, words: &str) -> Step {
    if state.has_unread_news() && turns(state).len() < turn_limit(request) as usize {
        return record_turn(state, &DIALOG).into();
    }
    let summary = words.chars().take(SUMMARY_CHARS).collect();
    let kept = state.work().snapshot.as_ref();
    let unsaved = state.work().unsaved();
    if unsaved.is_empty() && kept.is_none_or(|kept| kept.files_changed == 0) {
        return Step::Close(StopReason::NoChange { summary });
    }
    if reminders(state) < REMINDERS {
        return next_turn(state, request);
    }
    Step::Close(StopReason::Unfinished { summary, unsaved })
}

/// How many earlier turns ended without a tool call and were answered with a reminder.
fn reminders(state: &RunState) -> usize {
    let all = turns(state);
    let earlier = &all[..all.len().saturating_sub(1)];
    earlier
        .iter()
        .filter(|turn| turn.calls.is_empty() && turn.stopped_with(ReplyStop::EndTurn))
        .count()
}

fn turns(state: &RunState) -> &[Turn] {
    state
        .dialog_of(Phase::Work)
        .map_or(&[][..], |dialog| &dialog.turns)
}

fn next_turn(state: &RunState, request: &JobRequest) -> Step {
    let limit = turn_limit(request);
    if turns(state).len() >= limit as usize {
        return cut_short(state, request, StopReason::TurnLimit { turns: limit });
    }
    if let Some(repetition) = stuck(state, &DIALOG) {
        return cut_short(state, request, StopReason::Stuck(repetition));
    }
    record_turn(state, &DIALOG).into()
}

/// What exists becomes a draft; without a change the run just ends.
fn cut_short(state: &RunState, request: &JobRequest, reason: StopReason) -> Step {
    let kept = state.work().snapshot.as_ref();
    if kept.is_none_or(|kept| kept.files_changed == 0) {
        return Step::Close(reason);
    }
    let handover = Handover {
        title: request.text.summary.clone(),
        ..Handover::default()
    };
    let exit = Exit::CutShort {
        reason: Box::new(reason),
        handover: Box::new(handover),
    };
    Action::Record(Fact::PhaseFinished {
        output: PhaseOutput::Work { exit },
    })
    .into()
}

fn turn_limit(request: &JobRequest) -> u32 {
    request.rules.agent.max_turns.clamp(1, MOST_TURNS)
}
