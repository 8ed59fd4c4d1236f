//! Pushes the branch and opens the pull request.

use domain::report::BranchMerge;
use domain::{
    BranchPush, ChangeNaming, ChangeProof, FinishRule, JobRequest, OutboundAction, OutboundOutcome,
    OutboundRefusal, ReturnReason, ScopeInputs, StopReason, WaitCondition, WithdrawalReason, WorkHandover,
    report,
};

use super::description::describe_change;
use super::rework::go_back_to_work;
use crate::run::machine::{PhaseSpec, PlannerRunState, ReportState, RunStep, await_report, request_report};
use crate::run::tools::widen_scope;

// Alternative names for a refused branch name.
const MAX_NAMES: usize = 5;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::without_dialog(decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let (Some(request), Some(handover)) = (state.request(), state.outputs().handover()) else {
        return RunStep::Over;
    };
    let ends_ticket = ends_ticket(state, request);
    if let Some(wanted) = wanted_push(state, request)
        // An equal head is on the remote already, so a resumed run does not push it again.
        && !(wanted.expected.is_some() && state.source().work().is_pushed(&wanted.head))
    {
        return if ends_ticket {
            deliver_step(state, request, wanted, handover)
        } else {
            push_step(state, wanted)
        };
    }
    // The push and the end of the ticket are one report, so nothing remains.
    if ends_ticket && state.source().work().pushed.is_some() {
        return RunStep::Over;
    }
    if state.source().work().pull_request.is_some() {
        return state
            .outputs()
            .cut_short()
            .map_or(RunStep::Over, |reason| RunStep::Close(reason.clone()));
    }
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::OpenPullRequest(_));
    match state.delivery().last_report(is_it) {
        Some(asked) => settled_step(state, asked),
        None => request_pull_request(state, request),
    }
}

fn push_step(state: &PlannerRunState, wanted: BranchPush) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::PushBranch(push) if is_same_push(push, &wanted));
    match state.delivery().last_report(is_it) {
        Some(asked) => settled_step(state, asked),
        None => request_report(state, OutboundAction::PushBranch(wanted), None).into(),
    }
}

/// Returns true for the wanted push. Other fields may have changed since.
fn is_same_push(push: &BranchPush, wanted: &BranchPush) -> bool {
    (&push.head, &push.branch) == (&wanted.head, &wanted.branch)
}

/// Returns true if the change needs no pull request. An incomplete change needs one, and an existing one is
/// continued.
fn ends_ticket(state: &PlannerRunState, request: &JobRequest) -> bool {
    state.implements_ticket()
        && request.rules.agent.finish == FinishRule::Done
        && request.repository.local_folder().is_none()
        && state.outputs().cut_short().is_none()
        && state.outputs().proof().and_then(ChangeProof::failure).is_none()
        && state.source().work().pull_request.is_none()
}

fn deliver_step(
    state: &PlannerRunState,
    request: &JobRequest,
    wanted: BranchPush,
    handover: &WorkHandover,
) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::WorkDelivered(delivered) if is_same_push(&delivered.push, &wanted));
    match state.delivery().last_report(is_it) {
        Some(asked) => settled_step(state, asked),
        None => {
            let description = Box::new(describe_change(state, request, handover));
            let delivered = report::WorkDelivered {
                push: wanted,
                description,
            };
            request_report(state, OutboundAction::WorkDelivered(delivered), None).into()
        }
    }
}

/// Returns the step for a pending or unsuccessful report.
fn settled_step(state: &PlannerRunState, asked: &ReportState) -> RunStep {
    match &asked.outcome {
        Some(OutboundOutcome::Refused(refusal)) => refused_step(state, refusal),
        Some(OutboundOutcome::Done(_) | OutboundOutcome::Failed { .. }) | None => {
            await_report(state, &asked.id, WaitCondition::Report)
        }
    }
}

/// Handles a refused push. On a pull request's branch a foreign push wins: the work restarts on its commit.
fn refused_step(state: &PlannerRunState, refusal: &OutboundRefusal) -> RunStep {
    let on_a_pull_request = state
        .request()
        .is_some_and(|request| request.about.pull_request().is_some());
    if let OutboundRefusal::BranchMoved { head, .. } = refusal
        && on_a_pull_request
    {
        let restart = head.as_ref().and_then(|head| state.moved_to(head));
        return restart.map_or_else(
            || RunStep::Close(StopReason::ReportRefused(refusal.clone())),
            RunStep::from,
        );
    }
    // The ticket states the merge already, and no further commit can become part of it.
    if matches!(refusal, OutboundRefusal::PullRequestOver { .. }) {
        let why = WithdrawalReason::Merged;
        return RunStep::Finish(StopReason::Withdrawn { why });
    }
    // The model cannot change keys or permissions, so another try would fail in the same way.
    if refusal.needs_operator() {
        return RunStep::Close(StopReason::ReportRefused(refusal.clone()));
    }
    go_back_to_work(state, ReturnReason::Refused(refusal.clone()))
}

fn request_pull_request(state: &PlannerRunState, request: &JobRequest) -> RunStep {
    let (Some((branch, _)), Some(handover)) = (&state.source().work().pushed, state.outputs().handover())
    else {
        return go_back_to_work(state, ReturnReason::NothingChanged);
    };
    let naming = ChangeNaming::new(&request.rules, state.run.ticket());
    let title = naming.title(naming.of(handover, &request.text.kind));
    let wanted = OutboundAction::OpenPullRequest(report::PullRequestOpening {
        repository: request.repository.clone(),
        branch: branch.clone(),
        base_branch: request.rules.target_branch().to_owned(),
        title,
        body: String::new(),
        description: Some(Box::new(describe_change(state, request, handover))),
    });
    request_report(state, wanted, None).into()
}

/// Returns the push that brings the stored commit to the remote; `None` without a commit.
pub(super) fn wanted_push(state: &PlannerRunState, request: &JobRequest) -> Option<BranchPush> {
    let work = state.source().work();
    let kept = work.snapshot.as_ref()?;
    let branch = free_branch_name(state, kept.branch.as_deref()?);
    let pushed = work.pushed.as_ref().filter(|(pushed, _)| *pushed == branch);
    Some(BranchPush {
        repository: request.repository.clone(),
        expected: pushed.map(|(_, head)| head.clone()),
        branch,
        base: kept.base.clone(),
        head: kept.head.clone().filter(|head| *head != kept.base)?,
        pack: kept.pack.clone(),
        scope: push_scope(state, request),
        merge: push_merge(state, request),
    })
}

/// Returns the name for a pushed branch: its own, or the first alternative that the remote has not refused.
fn free_branch_name(state: &PlannerRunState, own: &str) -> String {
    let mut name = own.to_owned();
    for number in 2..MAX_NAMES + 2 {
        let Some(refusal) = name_refusal(state, &name) else {
            return name;
        };
        // A number is enough, unless the folder of the name conflicts: `fix` excludes all of `fix/…`.
        let is_folder = matches!(refusal, OutboundRefusal::BranchInTheWay { by, .. }
            if by.is_empty() || name.strip_prefix(by.as_str()).is_some_and(|rest| rest.starts_with('/')));
        name = if !name.contains('/') {
            format!("{}-{number}", own.replace('/', "-"))
        } else if is_folder {
            name.replace('/', "-")
        } else {
            format!("{own}-{number}")
        };
    }
    name
}

/// Returns the reason that the remote refused a new branch of this name.
fn name_refusal<'a>(state: &'a PlannerRunState, name: &str) -> Option<&'a OutboundRefusal> {
    state.delivery().reports().iter().find_map(|report| {
        let (OutboundAction::PushBranch(push)
        | OutboundAction::WorkDelivered(report::WorkDelivered { push, .. })) = &report.request
        else {
            return None;
        };
        match &report.outcome {
            Some(OutboundOutcome::Refused(refusal))
                if push.branch == name && push.expected.is_none() && is_about_name(refusal) =>
            {
                Some(refusal)
            }
            Some(_) | None => None,
        }
    })
}

/// Returns true if another name helps, because the remote does not refuse the work itself.
fn is_about_name(refusal: &OutboundRefusal) -> bool {
    matches!(
        refusal,
        OutboundRefusal::BranchInTheWay { .. }
            | OutboundRefusal::ForeignBranch { .. }
            | OutboundRefusal::BranchOfAnotherTicket { .. }
            | OutboundRefusal::BranchMoved { .. }
    )
}

/// Returns the merge that the commit makes, with the hunks that the model dropped for a reason.
fn push_merge(state: &PlannerRunState, request: &JobRequest) -> Option<Box<BranchMerge>> {
    let conflict = request.about.conflict()?;
    let handover = state.outputs().handover();
    Some(Box::new(BranchMerge {
        head: conflict.head.clone(),
        dropped: handover
            .map(|handover| handover.dropped.clone())
            .unwrap_or_default(),
    }))
}

/// Returns the scope of the change, where the rules have modules.
fn push_scope(state: &PlannerRunState, request: &JobRequest) -> Option<ScopeInputs> {
    (!request.rules.modules.is_empty()).then(|| ScopeInputs {
        kind: request.text.kind.clone(),
        widened: widen_scope::granted_modules(state, request),
    })
}
