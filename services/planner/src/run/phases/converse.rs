//! Conversation with the model, up to the point where its phase decides.

use domain::{JobRequest, Naming, Outside, ReplyStop, StopReason, WaitsFor, WorkspaceInfo};

use crate::run::machine::{
    Action, Answer, COMMIT_CHANGES, Call, Dialog, DialogSpec, RunState, Step, answer, await_report, idle,
    is_full, is_late, record_turn, run_tool, spent,
};
use crate::run::tools::widen_scope;

/// Progress of a conversation.
pub(super) enum Progress {
    /// A step has to come first.
    Step(Step),
    /// Every call of the last turn has its result.
    Answered,
    /// The last reply calls no tool; with its text.
    Silent(String),
    /// A shared budget has no room for the next call.
    Refused(StopReason),
    /// The model cannot read a longer conversation.
    Full,
}

/// Continues a conversation, from its first turn on.
pub(super) fn converse(state: &RunState, dialog: &DialogSpec) -> Progress {
    if let Some(reason) = state.refused() {
        return Progress::Refused(reason.clone());
    }
    if is_full(state, dialog) {
        return Progress::Full;
    }
    let is_it = |known: &&Dialog| (known.phase, known.round) == (dialog.phase, dialog.round(state));
    let last = state.dialog().filter(is_it);
    let (Some(turn), Some(request)) = (last.and_then(|known| known.turns.last()), state.request()) else {
        return Progress::Step(record_turn(state, dialog).into());
    };
    if let Some(trouble) = &turn.failed {
        let reason = StopReason::ModelFailed {
            detail: trouble.detail.clone(),
        };
        return Progress::Step(match trouble.transient {
            true => Step::Retry(reason),
            false => Step::Close(reason),
        });
    }
    let Some(reply) = &turn.reply else {
        return Progress::Step(Action::AskModel { id: turn.id.clone() }.into());
    };
    if let Some(call) = state.open_call() {
        return Progress::Step(tool_step(state, request, dialog, call, reply.stop));
    }
    // Snapshot before the next model call: a lost workspace must not lose changes that the model has seen.
    if dialog.has_workspace && state.work().dirty {
        return Progress::Step(Action::TakeSnapshot.into());
    }
    match reply.stop {
        ReplyStop::Refusal => Progress::Step(Step::Close(StopReason::ModelRefused)),
        ReplyStop::EndTurn | ReplyStop::ToolUse if turn.calls.is_empty() => Progress::Silent(reply.text()),
        ReplyStop::MaxTokens | ReplyStop::EndTurn | ReplyStop::ToolUse => Progress::Answered,
    }
}

/// Waits for a budget's next period if it has one, else ends the run, which has no result yet.
pub(super) fn postponed(reason: StopReason) -> Step {
    match reason.resets() {
        Some(_) => Step::Retry(reason),
        None => Step::Close(reason),
    }
}

/// Continues a conversation that ends when the model submits a result. Returns the next step, or the
/// result.
///
/// The result is `None` after this many turns, without budget, or when the model cannot read more.
pub(super) fn handed_in<T>(
    state: &RunState,
    dialog: &DialogSpec,
    most_turns: usize,
    taken: impl Fn(&[Call]) -> Option<T>,
) -> Result<Option<T>, Step> {
    match converse(state, dialog) {
        Progress::Step(step) => return Err(step),
        Progress::Refused(reason) => return Err(postponed(reason)),
        Progress::Full => return Ok(None),
        Progress::Answered | Progress::Silent(_) => {}
    }
    // The last turn is from before the return, so its calls do not count.
    if state.came_back_to(dialog.phase) {
        return Err(record_turn(state, dialog).into());
    }
    let turns = state.turns_of(dialog);
    let calls = turns.last().map_or(&[][..], |turn| &turn.calls);
    match taken(calls) {
        None if turns.len() < most_turns
            && spent(state, dialog.phase).is_none()
            && idle(state, dialog).is_none() =>
        {
            Err(record_turn(state, dialog).into())
        }
        handed_in => Ok(handed_in),
    }
}

fn tool_step(
    state: &RunState,
    request: &JobRequest,
    dialog: &DialogSpec,
    call: &Call,
    stop: ReplyStop,
) -> Step {
    if let Some(id) = &call.report {
        return await_report(state, id, WaitsFor::Report);
    }
    // A truncated reply may contain a call whose arguments are complete JSON but not what the model meant.
    if stop == ReplyStop::MaxTokens {
        return answer(state, call, Answer::CutReply).into();
    }
    if !call.call.input.is_object() {
        return answer(state, call, Answer::NoObject).into();
    }
    if is_late(state, dialog, call) {
        let exits = dialog.tools.iter().filter(|tool| tool.ends_work);
        let tools = exits.map(|tool| tool.name.to_owned()).collect();
        return answer(state, call, Answer::ExitsOnly { tools }).into();
    }
    if let Some(tool) = dialog.tools.iter().find(|tool| tool.name == call.call.name) {
        return (tool.act)(state, request, call);
    }
    if !dialog.offers(state, &call.call.name) {
        let own = dialog.tools.iter().map(|tool| tool.name);
        let tools = dialog.theirs(state).chain(own).map(str::to_owned).collect();
        return answer(state, call, Answer::UnknownTool { tools }).into();
    }
    let is_changing = |info: &WorkspaceInfo| {
        let mut tools = info.tools.iter();
        tools.any(|tool| tool.name == call.call.name && !tool.read_only)
    };
    if dialog.is_read_only && state.open_workspace().is_some_and(is_changing) {
        return answer(state, call, Answer::ReadOnly).into();
    }
    if let Some(branch) = other_branch(request, call) {
        return answer(state, call, Answer::OtherBranch { branch }).into();
    }
    if let Some(right) = misnamed(state, request, call) {
        return answer(state, call, Answer::Misnamed { right }).into();
    }
    if let Some(outside) = out_of_scope(state, request, call) {
        return answer(state, call, Answer::OutOfScope(outside)).into();
    }
    if call.is_deadly() {
        return answer(state, call, Answer::LostTwice).into();
    }
    run_tool(state, call, false).into()
}

/// Returns the first file that a call would write outside of the scope. Commands may write anywhere; the
/// proof checks the change.
fn out_of_scope(state: &RunState, request: &JobRequest, call: &Call) -> Option<Outside> {
    let scope = widen_scope::scope(state, request);
    call.paths().into_iter().find_map(|path| scope.outside(path))
}

/// Returns the branch of the pull request that a call would leave.
fn other_branch(request: &JobRequest, call: &Call) -> Option<String> {
    let (ours, _) = request.about.pull_request()?;
    let wanted = call.call.input.get("branch_name")?.as_str()?;
    (call.call.name == "create_branch" && wanted != ours.branch).then(|| ours.branch.clone())
}

/// Returns the right form of a branch name or commit message that violates the rules.
fn misnamed(state: &RunState, request: &JobRequest, call: &Call) -> Option<String> {
    let naming = Naming::new(&request.rules, state.run.ticket());
    let text = |field: &str| call.call.input.get(field)?.as_str();
    match call.call.name.as_str() {
        // An existing branch keeps its name.
        "create_branch" if request.about.pull_request().is_none() => {
            naming.check_branch(text("branch_name")?).err()
        }
        COMMIT_CHANGES => naming.check_message(text("message")?).err(),
        _ => None,
    }
}
