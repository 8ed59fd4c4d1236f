//! Conversation with the model, up to the point where its phase decides.

use domain::{
    ChangeNaming, ExecutorWorkspace, JobRequest, MetadataPattern, OutOfScopeFile, ReplyStop, StopReason,
    WaitCondition,
};

use crate::run::machine::{
    COMMIT_CHANGES, CallAnswer, DialogSpec, PhaseDialog, PlannerRunState, RunAction, RunStep, TurnCall,
    answer_call, await_report, idle_repetition, is_context_full, is_late_call, record_turn, run_mcp_tool,
    run_tool, spent_reason,
};
use crate::run::tools::widen_scope;

/// Progress of a conversation.
pub(super) enum ConversationProgress {
    /// A step has to come first.
    Step(RunStep),
    /// Every call of the last turn has its result.
    Answered,
    /// The last reply calls no tool; with its text.
    Silent(String),
    /// A budget has no room for the next call.
    Refused(StopReason),
    /// The model cannot read a longer conversation.
    Full,
}

/// Continues a conversation, from its first turn on.
pub(super) fn advance_conversation(state: &PlannerRunState, dialog: &DialogSpec) -> ConversationProgress {
    if let Some(reason) = state.budget().refused(state.journal.last_at) {
        return ConversationProgress::Refused(reason.clone());
    }
    if is_context_full(state, dialog) {
        return ConversationProgress::Full;
    }
    let is_it = |known: &&PhaseDialog| (known.phase, known.round) == (dialog.phase, dialog.round(state));
    let last = state.conversation().dialog().filter(is_it);
    let (Some(turn), Some(request)) = (last.and_then(|known| known.turns.last()), state.request()) else {
        // A phase does not begin when the phases before it spent the budget.
        return match spent_reason(state, dialog.phase) {
            Some(reason) => ConversationProgress::Refused(reason),
            None => ConversationProgress::Step(record_turn(state, dialog).into()),
        };
    };
    if let Some(trouble) = &turn.failed {
        let reason = StopReason::ModelFailed {
            detail: trouble.detail.clone(),
        };
        return ConversationProgress::Step(if trouble.transient {
            RunStep::Retry(reason)
        } else {
            RunStep::Close(reason)
        });
    }
    let Some(reply) = &turn.reply else {
        return ConversationProgress::Step(RunAction::AskModel { id: turn.id.clone() }.into());
    };
    // The provider interrupts the reply that it refuses, so its calls are not what the model meant.
    if reply.stop == ReplyStop::Refusal {
        return ConversationProgress::Step(RunStep::Close(StopReason::ModelRefused));
    }
    if let Some(call) = state.open_call() {
        return ConversationProgress::Step(call_step(state, request, dialog, call, reply.stop));
    }
    // Snapshot before the next model call: a lost workspace must not lose changes that the model has seen.
    if dialog.has_workspace && state.source().work().dirty {
        return ConversationProgress::Step(RunAction::TakeSnapshot.into());
    }
    if turn.calls.is_empty() && reply.stop != ReplyStop::MaxTokens {
        ConversationProgress::Silent(reply.text())
    } else {
        ConversationProgress::Answered
    }
}

/// Waits for a budget's next period if it has one, else ends the run, which has no result yet.
pub(super) fn postpone_run(reason: StopReason) -> RunStep {
    match reason.resets() {
        Some(_) => RunStep::Retry(reason),
        None => RunStep::Close(reason),
    }
}

/// Continues a conversation that ends when the model submits a result. Returns the next step, or the
/// result.
///
/// The result is `None` after this many turns, without budget, or when the model cannot read more.
pub(super) fn await_submission<T>(
    state: &PlannerRunState,
    dialog: &DialogSpec,
    most_turns: usize,
    taken: impl Fn(&[TurnCall]) -> Option<T>,
) -> Result<Option<T>, RunStep> {
    match advance_conversation(state, dialog) {
        ConversationProgress::Step(step) => return Err(step),
        ConversationProgress::Refused(reason) => return Err(postpone_run(reason)),
        ConversationProgress::Full => return Ok(None),
        ConversationProgress::Answered | ConversationProgress::Silent(_) => {}
    }
    // The last turn is from before the return, so its calls do not count.
    let turn_count = state.conversation().turn_count();
    if state.outputs().came_back_to(dialog.phase, turn_count) {
        return Err(record_turn(state, dialog).into());
    }
    let turns = dialog.turns(state);
    let calls = turns.last().map_or(&[][..], |turn| &turn.calls);
    match taken(calls) {
        None if turns.len() < most_turns
            && spent_reason(state, dialog.phase).is_none()
            && idle_repetition(state, dialog).is_none() =>
        {
            Err(record_turn(state, dialog).into())
        }
        handed_in => Ok(handed_in),
    }
}

fn call_step(
    state: &PlannerRunState,
    request: &JobRequest,
    dialog: &DialogSpec,
    call: &TurnCall,
    stop: ReplyStop,
) -> RunStep {
    if let Some(id) = &call.report {
        return await_report(state, id, WaitCondition::Report);
    }
    // A truncated reply may contain a call whose arguments are complete JSON but not what the model meant.
    if stop == ReplyStop::MaxTokens {
        return answer_call(state, call, CallAnswer::TruncatedReply).into();
    }
    if !call.call.input.is_object() {
        return answer_call(state, call, CallAnswer::NoObject).into();
    }
    if is_late_call(state, dialog, call) {
        let exits = dialog.tools.iter().filter(|tool| tool.ends_work);
        let tools = exits.map(|tool| tool.name.to_owned()).collect();
        return answer_call(state, call, CallAnswer::ExitsOnly { tools }).into();
    }
    if let Some(tool) = dialog.tools.iter().find(|tool| tool.name == call.call.name) {
        return (tool.act)(state, request, call);
    }
    if let Some((server, tool)) = dialog.find_mcp_tool(state, &call.call.name) {
        if dialog.is_read_only && !tool.spec.read_only {
            return answer_call(state, call, CallAnswer::ReadOnlyServers).into();
        }
        if server.command.is_none() {
            return run_mcp_tool(state, call, (&server.server, tool)).into();
        }
        // A server that is a command runs in the workspace, like a command of the model.
        return run_tool(state, call, false).into();
    }
    if !dialog.offers(state, &call.call.name) {
        let tools = dialog.tool_names(state).map(str::to_owned).collect();
        return answer_call(state, call, CallAnswer::UnknownTool { tools }).into();
    }
    let is_changing = |info: &ExecutorWorkspace| {
        let mut tools = info.tools.iter();
        tools.any(|tool| tool.name == call.call.name && !tool.read_only)
    };
    if dialog.is_read_only && state.source().open_workspace().is_some_and(is_changing) {
        return answer_call(state, call, CallAnswer::ReadOnly).into();
    }
    if let Some(branch) = branch_to_keep(request, call) {
        return answer_call(state, call, CallAnswer::OtherBranch { branch }).into();
    }
    if let Some(right) = right_name(state, request, call) {
        return answer_call(state, call, CallAnswer::Misnamed { right }).into();
    }
    if let Some(pattern) = find_unmet_pattern(state, request, call) {
        return answer_call(state, call, CallAnswer::Unmet(pattern.clone())).into();
    }
    if let Some(outside) = file_out_of_scope(state, request, call) {
        return answer_call(state, call, CallAnswer::OutOfScope(outside)).into();
    }
    run_tool(state, call, false).into()
}

/// Returns the first file that a call would write outside of the scope. Commands may write anywhere; the
/// proof checks the change.
fn file_out_of_scope(
    state: &PlannerRunState,
    request: &JobRequest,
    call: &TurnCall,
) -> Option<OutOfScopeFile> {
    let scope = widen_scope::run_scope(state, request);
    call.paths().into_iter().find_map(|path| scope.outside(path))
}

/// Returns the branch of the pull request that a call would leave.
fn branch_to_keep(request: &JobRequest, call: &TurnCall) -> Option<String> {
    let (ours, _) = request.about.pull_request()?;
    let wanted = call.call.input.get("branch_name")?.as_str()?;
    (call.call.name == "create_branch" && wanted != ours.branch).then(|| ours.branch.clone())
}

/// Returns the naming scheme of the run, with the patterns of the server.
fn name_change<'a>(state: &'a PlannerRunState, request: &'a JobRequest) -> ChangeNaming<'a> {
    let patterns = state.delivery().required_patterns();
    ChangeNaming::new(&request.rules, state.run.ticket()).with_patterns(patterns)
}

/// Returns the pattern of the server that the branch name or commit message of a call does not meet.
fn find_unmet_pattern<'a>(
    state: &'a PlannerRunState,
    request: &'a JobRequest,
    call: &TurnCall,
) -> Option<&'a MetadataPattern> {
    let naming = name_change(state, request);
    let text = |field: &str| call.call.input.get(field)?.as_str();
    match call.call.name.as_str() {
        "create_branch" if request.about.pull_request().is_none() => {
            naming.unmet_by_branch(text("branch_name")?)
        }
        COMMIT_CHANGES => naming.unmet_by_message(text("message")?),
        _ => None,
    }
}

/// Returns the right form of a branch name or commit message that violates the rules.
fn right_name(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> Option<String> {
    let naming = name_change(state, request);
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
