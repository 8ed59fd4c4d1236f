//! Works on the change in the workspace until the model finishes or gives up.

use domain::{
    Class, Exit, Fact, Handover, JobRequest, ModelRole, Phase, PhaseOutput, Repetition, RepetitionKind,
    ReplyStop, StopReason, WaitsFor,
};

use super::converse::{Progress, converse, postponed};
use crate::run::machine::{
    Action, Call, CallResult, CallState, DialogSpec, PhaseSpec, RunState, Step, Turn, full_reason, idle,
    park, record_turn, spent, stuck, turn_limit,
};
use crate::run::tools::{accepted, ask, finish, give_up, widen_scope};

// Maximum of reminders after replies without a tool call.
const REMINDERS: usize = 2;
// Replies in a row that reach the token limit without a call, after which the work ends.
const MOST_TRUNCATED: usize = 3;
const SUMMARY_CHARS: usize = 4000;
// A normal ticket that touches more files than this, and more than expected, is large.
const NORMAL_FILES: usize = 5;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    ..DialogSpec::new(
        Phase::Work,
        ModelRole::Default,
        &[finish::TOOL, ask::TOOL, give_up::TOOL, widen_scope::TOOL],
    )
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
        Progress::Refused(reason) => cut_short(state, request, reason),
        Progress::Silent(words) => ended(state, request, &words),
        Progress::Full => cut_short(state, request, full_reason(state)),
    }
}

/// Handles a turn with complete results: an exit ends the work, a question waits for its answer.
fn answered(state: &RunState, request: &JobRequest) -> Step {
    if state.came_back_to(Phase::Work) {
        return next_turn(state, request);
    }
    let calls = state.last_turn().map_or(&[][..], |turn| &turn.calls);
    // A new comment may change the request, so it goes to the model before the exit counts.
    let has_time = state.turns_of(&DIALOG).len() < turn_limit(state, request) as usize;
    if let Some(exit) = exit(calls)
        && !(state.has_unread_news() && has_time)
    {
        let output = PhaseOutput::Work { exit };
        return Action::Record(Fact::PhaseFinished { output }).into();
    }
    if calls.iter().any(is_question) && !state.has_answer_since(state.turns()) {
        return park(state, WaitsFor::Answer).into();
    }
    next_turn(state, request)
}

/// Returns the exit of a turn.
fn exit(calls: &[Call]) -> Option<Exit> {
    let finished = accepted(calls, &finish::TOOL, finish::parse);
    let finished = finished.map(|handover| Exit::Finished(Box::new(handover)));
    finished.or_else(|| {
        let (kind, evidence) = accepted(calls, &give_up::TOOL, give_up::parse)?;
        Some(Exit::GaveUp { kind, evidence })
    })
}

/// Returns true for a question that is posted on the ticket.
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

/// Handles a reply without a tool call and without an exit.
fn ended(state: &RunState, request: &JobRequest, words: &str) -> Step {
    if state.has_unread_news() && state.turns_of(&DIALOG).len() < turn_limit(state, request) as usize {
        return record_turn(state, &DIALOG).into();
    }
    let summary = words.chars().take(SUMMARY_CHARS).collect();
    let kept = state.work().snapshot.as_ref();
    let unsaved = state.work().unsaved();
    // Models announce their next step, and some write their calls as text, so a text does not end the work.
    if reminders(state) < REMINDERS {
        return next_turn(state, request);
    }
    if unsaved.is_empty() && kept.is_none_or(|kept| kept.files_changed == 0) {
        return Step::Close(StopReason::NoChange { summary });
    }
    Step::Close(StopReason::Unfinished { summary, unsaved })
}

/// Returns the last replies if they all reached the token limit without a call.
fn truncated(state: &RunState) -> Option<Repetition> {
    let is_truncated = |turn: &&Turn| turn.calls.is_empty() && turn.stopped_with(ReplyStop::MaxTokens);
    let turns = state
        .turns_of(&DIALOG)
        .iter()
        .rev()
        .take_while(is_truncated)
        .count();
    (turns >= MOST_TRUNCATED).then(|| Repetition {
        kind: RepetitionKind::Truncated,
        turns: u32::try_from(turns).unwrap_or(u32::MAX),
        tools: Vec::new(),
    })
}

/// Returns the number of earlier turns without a tool call, each of which got a reminder.
fn reminders(state: &RunState) -> usize {
    let all = state.turns_of(&DIALOG);
    let earlier = &all[..all.len().saturating_sub(1)];
    earlier
        .iter()
        .filter(|turn| turn.calls.is_empty() && turn.stopped_with(ReplyStop::EndTurn))
        .count()
}

fn next_turn(state: &RunState, request: &JobRequest) -> Step {
    let limit = turn_limit(state, request);
    let done = state.turns_of(&DIALOG).len();
    // Before the hint about limits, which must name the limits of the final class.
    if done * 2 >= limit as usize
        && let Some(class) = larger_class(state, request)
    {
        return Action::Record(Fact::ClassRaised { class }).into();
    }
    if done >= limit as usize {
        return cut_short(state, request, StopReason::TurnLimit { turns: limit });
    }
    if let Some(reason) = spent(state, Phase::Work) {
        return cut_short(state, request, reason);
    }
    let repetition = truncated(state).or_else(|| stuck(state, &DIALOG));
    if let Some(repetition) = repetition.or_else(|| idle(state, &DIALOG)) {
        return cut_short(state, request, StopReason::Stuck(repetition));
    }
    record_turn(state, &DIALOG).into()
}

/// Returns the larger class that the ticket turns out to have: trivial work does not take half of its
/// turns, and normal work touches no more files than expected.
fn larger_class(state: &RunState, request: &JobRequest) -> Option<Class> {
    let class = state.class();
    let larger = class.larger()?;
    let touched = state
        .work()
        .snapshot
        .as_ref()
        .map_or(0, |kept| kept.files_changed);
    let expected = state.intake().flatten().map_or(0, |intake| intake.files.len());
    let is_larger = class == Class::Trivial || touched as usize > expected.max(NORMAL_FILES);
    let agent = &request.rules.agent;
    (is_larger && agent.turns(larger) > agent.turns(class)).then_some(larger)
}

/// Delivers the existing change as a draft. Without a change the run ends, or waits for a budget's next
/// period.
fn cut_short(state: &RunState, request: &JobRequest, reason: StopReason) -> Step {
    let kept = state.work().snapshot.as_ref();
    if kept.is_none_or(|kept| kept.files_changed == 0) {
        return postponed(reason);
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
