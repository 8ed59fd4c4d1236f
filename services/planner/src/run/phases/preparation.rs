//! Phases before the work: first notices to the requester, the workspace, and the code to start from.

use domain::{
    Dollars, Fact, OutboundAction, OutboundOutcome, ReactionKind, RunEffort, StopReason, WaitCondition,
    report, report::ReactionRequest, text::take_tail,
};

use crate::run::machine::{
    PhaseResult, PhaseSpec, PlannerRunState, PlannerWorkspaceState, RunAction, RunStep, await_report,
    request_report,
};

// Characters of a failed setup's log.
const LOG_CHARS: usize = 4000;

/// Acknowledges the request with a reaction.
pub(in crate::run) const ACKNOWLEDGE: PhaseSpec = PhaseSpec::without_dialog(acknowledge_request);

fn acknowledge_request(state: &PlannerRunState) -> RunStep {
    react_once(state, ReactionKind::Eyes).unwrap_or(RunStep::Over)
}

/// Reacts once to the request. The run does not wait for it, because a reaction has no effect on the work.
pub(super) fn react_once(state: &PlannerRunState, reaction: ReactionKind) -> Option<RunStep> {
    let to = state.request()?.reactable(state.run.ticket())?;
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::React(known) if known.reaction == reaction);
    if state.delivery().last_report(is_it).is_some() {
        return None;
    }
    Some(
        request_report(
            state,
            OutboundAction::React(ReactionRequest { to, reaction }),
            None,
        )
        .into(),
    )
}

/// Announces the start of the work on the ticket.
pub(in crate::run) const ANNOUNCE: PhaseSpec = PhaseSpec::without_dialog(announce_work);

fn announce_work(state: &PlannerRunState) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::WorkStarted(_));
    match state.request() {
        Some(request) if state.delivery().last_report(is_it).is_none() => {
            let started = OutboundAction::WorkStarted(report::WorkStarted {
                job: request.job,
                repository: request.repository.clone(),
                begun: state.lifecycle().begun().clone(),
            });
            request_report(state, started, None).into()
        }
        _ => RunStep::Over,
    }
}

/// Waits before the first model call until the reporter knows that it can deliver a change to the repository.
///
/// The reporter checks that as the first effect of the announcement, while the workspace opens.
pub(in crate::run) const CONFIRM_PUSH: PhaseSpec = PhaseSpec::without_dialog(confirm_push);

fn confirm_push(state: &PlannerRunState) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::WorkStarted(_));
    let Some(started) = state.delivery().last_report(is_it) else {
        return RunStep::Over;
    };
    match &started.outcome {
        Some(OutboundOutcome::Refused(refusal)) if refusal.needs_operator() => {
            RunStep::Close(StopReason::ReportRefused(refusal.clone()))
        }
        // Without a conversation, nothing is paid yet. A run of an earlier release may be beyond that.
        None if state.conversation().dialogs().is_empty() => {
            await_report(state, &started.id, WaitCondition::Report)
        }
        // Every other failure is about the announcement alone.
        Some(_) | None => RunStep::Over,
    }
}

/// Opens the workspace of the run.
pub(in crate::run) const OPEN_WORKSPACE: PhaseSpec = PhaseSpec::without_dialog(open_workspace);

fn open_workspace(state: &PlannerRunState) -> RunStep {
    match &state.source().work().workspace {
        PlannerWorkspaceState::Absent => Fact::WorkspaceRequested {
            id: state.next_id(),
            repository: None,
        }
        .into(),
        PlannerWorkspaceState::Requested(id) => RunAction::OpenWorkspace { id: id.clone() }.into(),
        PlannerWorkspaceState::Failed {
            detail, setup: true, ..
        } => RunStep::Close(StopReason::SetupFailed {
            log_tail: take_tail(detail, LOG_CHARS),
        }),
        PlannerWorkspaceState::Failed {
            detail,
            permanent: true,
            ..
        } => RunStep::Close(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
        PlannerWorkspaceState::Failed {
            detail, setup: false, ..
        } => RunStep::Retry(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
        PlannerWorkspaceState::Open(_) => RunStep::Over,
    }
}

/// Lists the tools of the MCP servers that the rules allow.
pub(in crate::run) const LIST_MCP_TOOLS: PhaseSpec = PhaseSpec::without_dialog(list_mcp_tools);

fn list_mcp_tools(state: &PlannerRunState) -> RunStep {
    let is_allowed = state
        .request()
        .is_some_and(|request| !request.rules.agent.mcp.is_empty());
    // A former release began the conversation without these tools, and a change would lose the provider's
    // cache.
    let is_late = state.conversation().turn_count() > 0;
    if is_allowed && !is_late && !state.mcp().is_listed() {
        RunAction::ListMcpTools.into()
    } else {
        RunStep::Over
    }
}

/// Searches for code that matches the ticket, as a starting point for the model. It never waits for the
/// index.
pub(in crate::run) const SEED_CODE: PhaseSpec = PhaseSpec::without_dialog(seed_code);

fn seed_code(state: &PlannerRunState) -> RunStep {
    match state.source().code() {
        None => RunAction::FindCode.into(),
        Some(_) => RunStep::Over,
    }
}

/// Searches for code again, with the files that the triage expects to change.
pub(in crate::run) const REFINE_CODE: PhaseSpec = PhaseSpec::without_dialog(refine_code);

fn refine_code(state: &PlannerRunState) -> RunStep {
    let expects = state
        .outputs()
        .intake()
        .present()
        .is_some_and(|intake| !intake.files.is_empty());
    // The first search was at the start of the run; more than one further search brings nothing new.
    if expects && state.source().lookups() < 2 && !state.conversation().is_at_work() {
        RunAction::FindCode.into()
    } else {
        RunStep::Over
    }
}

/// Posts the effort of similar work on the ticket, where enough history exists.
pub(in crate::run) const FORECAST: PhaseSpec = PhaseSpec::without_dialog(post_forecast);

fn post_forecast(state: &PlannerRunState) -> RunStep {
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::EffortForecast(_));
    match state.budget().forecast() {
        // A former release began the work without a forecast.
        PhaseResult::Pending if state.conversation().is_at_work() => RunStep::Over,
        PhaseResult::Pending => RunAction::Forecast.into(),
        PhaseResult::Present(forecast) if state.delivery().last_report(is_it).is_none() => {
            let repository = request.repository.clone();
            request_report(
                state,
                OutboundAction::EffortForecast(report::EffortForecast { repository, forecast }),
                None,
            )
            .into()
        }
        PhaseResult::Missing | PhaseResult::Present(_) => RunStep::Over,
    }
}

/// Returns the effort of the run so far.
pub(crate) fn effort_so_far(state: &PlannerRunState) -> RunEffort {
    let change = state.verification().checks().report();
    let lines = change.map(|change| u64::from(change.product_lines) + u64::from(change.test_lines));
    let spent = state.budget().spending();
    RunEffort {
        busy_ms: spent.busy_ms,
        cost_micros: spent.models.known_cost().map(Dollars::micros),
        tokens: spent.models.tokens,
        lines: lines.unwrap_or_default(),
    }
}
