//! Works on the change in the workspace until the model finishes or gives up.

use domain::{
    Fact, JobRequest, ModelRole, PhaseOutput, RepetitionKind, ReplyStop, RunPhase, StopReason,
    TurnRepetition, WaitCondition, WorkClass, WorkExit, WorkHandover,
};

use super::conversation_loop::{ConversationProgress, advance_conversation, postpone_run};
use crate::run::machine::{
    CallResult, DialogSpec, DialogTurn, PhaseSpec, PlannerRunState, RunStep, TurnCall, final_repetition,
    full_reason, idle_repetition, park_run, record_turn, spent_reason, turn_limit,
};
use crate::run::tools::{accepted_input, exits, read_attachment, widen_scope};

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
        RunPhase::Work,
        ModelRole::Default,
        &[
            exits::FINISH,
            exits::ASK,
            exits::GIVE_UP,
            widen_scope::TOOL,
            read_attachment::TOOL,
        ],
    )
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    match state.outputs().exit() {
        Some(WorkExit::Finished(_) | WorkExit::CutShort { .. }) => return RunStep::Over,
        Some(WorkExit::GaveUp { kind, evidence }) => {
            return RunStep::Close(StopReason::GivenUp {
                kind: *kind,
                evidence: evidence.clone(),
            });
        }
        None => {}
    }
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    match advance_conversation(state, &DIALOG) {
        ConversationProgress::Step(step) => step,
        ConversationProgress::Answered => follow_results(state, request),
        ConversationProgress::Refused(reason) => end_early(state, request, reason),
        ConversationProgress::Silent(words) => follow_silence(state, request, &words),
        ConversationProgress::Full => end_early(state, request, full_reason(state)),
    }
}

/// Handles a turn with complete results: an exit ends the work, a question waits for its answer.
fn follow_results(state: &PlannerRunState, request: &JobRequest) -> RunStep {
    let turn_count = state.conversation().turn_count();
    if state.outputs().came_back_to(RunPhase::Work, turn_count) {
        return start_next_turn(state, request);
    }
    let calls = state
        .conversation()
        .last_turn()
        .map_or(&[][..], |turn| &turn.calls);
    // A new comment may change the request, so it goes to the model before the exit counts.
    let has_time = DIALOG.turns(state).len() < turn_limit(state, request) as usize;
    if let Some(exit) = exit_of_turn(calls)
        && !(has_unread_news(state) && has_time)
    {
        return PhaseOutput::Work { exit }.into();
    }
    if calls.iter().any(is_question) && !has_unread_news(state) {
        return park_run(state, WaitCondition::Answer).into();
    }
    start_next_turn(state, request)
}

/// Returns true if an author who may instruct has commented since the last turn.
fn has_unread_news(state: &PlannerRunState) -> bool {
    let conversation = state.conversation();
    conversation.news().has_answer_since(conversation.turn_count())
}

/// Returns the exit of a turn.
fn exit_of_turn(calls: &[TurnCall]) -> Option<WorkExit> {
    let finished = accepted_input(calls, &exits::FINISH, exits::parse_handover);
    let finished = finished.map(|handover| WorkExit::Finished(Box::new(handover)));
    finished.or_else(|| {
        let (kind, evidence) = accepted_input(calls, &exits::GIVE_UP, exits::parse_give_up)?;
        Some(WorkExit::GaveUp { kind, evidence })
    })
}

/// Returns true for a question that is posted on the ticket.
fn is_question(call: &TurnCall) -> bool {
    let is_asked = matches!(
        call.outcome(),
        Some(CallResult::Settled(domain::OutboundOutcome::Done(_)))
    );
    call.call.name == exits::ASK.name && is_asked
}

/// Handles a reply without a tool call and without an exit.
fn follow_silence(state: &PlannerRunState, request: &JobRequest, words: &str) -> RunStep {
    if has_unread_news(state) && DIALOG.turns(state).len() < turn_limit(state, request) as usize {
        return record_turn(state, &DIALOG).into();
    }
    let summary = words.chars().take(SUMMARY_CHARS).collect();
    let kept = state.source().work().snapshot.as_ref();
    let unsaved = state.source().work().unsaved();
    // Models announce their next step, and some write their calls as text, so a text does not end the work.
    if count_reminders(state) < REMINDERS {
        return start_next_turn(state, request);
    }
    if unsaved.is_empty() && kept.is_none_or(|kept| kept.files_changed == 0) {
        return RunStep::Close(StopReason::NoChange { summary });
    }
    // An unsaved change cannot be delivered, and a part of it would mislead.
    let is_saved = unsaved.is_empty();
    let reason = StopReason::Unfinished { summary, unsaved };
    if is_saved {
        end_early(state, request, reason)
    } else {
        RunStep::Close(reason)
    }
}

/// Returns the last replies if they all reached the token limit without a call.
fn truncated_repetition(state: &PlannerRunState) -> Option<TurnRepetition> {
    let is_truncated = |turn: &&DialogTurn| turn.calls.is_empty() && turn.stopped_with(ReplyStop::MaxTokens);
    let turns = DIALOG.turns(state).iter().rev().take_while(is_truncated).count();
    (turns >= MOST_TRUNCATED).then(|| TurnRepetition {
        kind: RepetitionKind::Truncated,
        turns: u32::try_from(turns).unwrap_or(u32::MAX),
        tools: Vec::new(),
    })
}

/// Returns the number of earlier turns without a tool call, each of which got a reminder.
fn count_reminders(state: &PlannerRunState) -> usize {
    let all = DIALOG.turns(state);
    let earlier = &all[..all.len().saturating_sub(1)];
    earlier
        .iter()
        .filter(|turn| turn.calls.is_empty() && turn.stopped_with(ReplyStop::EndTurn))
        .count()
}

fn start_next_turn(state: &PlannerRunState, request: &JobRequest) -> RunStep {
    let limit = turn_limit(state, request);
    let done = DIALOG.turns(state).len();
    // Before the hint about limits, which must name the limits of the final class.
    if done * 2 >= limit as usize
        && let Some(class) = larger_class(state, request)
    {
        return Fact::ClassRaised { class }.into();
    }
    if done >= limit as usize {
        return end_early(state, request, StopReason::TurnLimit { turns: limit });
    }
    if let Some(reason) = spent_reason(state, RunPhase::Work) {
        return end_early(state, request, reason);
    }
    let repetition = truncated_repetition(state).or_else(|| final_repetition(state, &DIALOG));
    if let Some(repetition) = repetition.or_else(|| idle_repetition(state, &DIALOG)) {
        return end_early(state, request, StopReason::Stuck(repetition));
    }
    record_turn(state, &DIALOG).into()
}

/// Returns the larger class that the ticket turns out to have: trivial work does not take half of its
/// turns, and normal work touches no more files than expected.
fn larger_class(state: &PlannerRunState, request: &JobRequest) -> Option<WorkClass> {
    let class = state.outputs().class();
    let larger = class.larger()?;
    let touched = state
        .source()
        .work()
        .snapshot
        .as_ref()
        .map_or(0, |kept| kept.files_changed);
    let expected = state
        .outputs()
        .intake()
        .present()
        .map_or(0, |intake| intake.files.len());
    let is_larger = class == WorkClass::Trivial || touched as usize > expected.max(NORMAL_FILES);
    let agent = &request.rules.agent;
    (is_larger && agent.turns(larger) > agent.turns(class)).then_some(larger)
}

/// Delivers the existing change as a draft. Without a change the run ends, or waits for a budget's next
/// period.
fn end_early(state: &PlannerRunState, request: &JobRequest, reason: StopReason) -> RunStep {
    let kept = state.source().work().snapshot.as_ref();
    if kept.is_none_or(|kept| kept.files_changed == 0) {
        return postpone_run(reason);
    }
    let handover = WorkHandover {
        title: request.text.summary.clone(),
        ..WorkHandover::default()
    };
    let exit = WorkExit::CutShort {
        reason: Box::new(reason),
        handover: Box::new(handover),
    };
    PhaseOutput::Work { exit }.into()
}
