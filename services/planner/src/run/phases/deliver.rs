//! Pushes the branch and opens the pull request.

use domain::{
    Finish, Handover, Job, JobRequest, Naming, Proof, PushBranch, Refusal, ReportOutcome, ReportRequest,
    Return, ScopeOf, StopReason, WaitsFor, report,
};

use super::back::back;
use super::describe::describe;
use crate::run::machine::{Action, PhaseSpec, ReportState, RunState, Step, ask, await_report};
use crate::run::tools::widen_scope;

// Alternative names for a refused branch name.
const MAX_NAMES: usize = 5;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let (Some(request), Some(handover)) = (state.request(), state.handover()) else {
        return Step::Over;
    };
    let ends_ticket = ends_ticket(state, request);
    if let Some(wanted) = wanted_push(state, request)
        // An equal head is on the remote already, so a resumed run does not push it again.
        && wanted.expected.as_ref() != Some(&wanted.head)
    {
        return match ends_ticket {
            true => close(state, request, wanted, handover),
            false => push(state, wanted),
        };
    }
    // The push and the end of the ticket are one report, so nothing remains.
    if ends_ticket && state.work().pushed.is_some() {
        return Step::Over;
    }
    if state.work().pull_request.is_some() {
        return state
            .cut_short()
            .map_or(Step::Over, |reason| Step::Close(reason.clone()));
    }
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::OpenPullRequest(_));
    match state.last_report(is_it) {
        Some(asked) => settled(state, asked),
        None => open(state, request),
    }
}

fn push(state: &RunState, wanted: PushBranch) -> Step {
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::PushBranch(push) if is_same_push(push, &wanted));
    match state.last_report(is_it) {
        Some(asked) => settled(state, asked),
        None => ask(state, ReportRequest::PushBranch(wanted), None).into(),
    }
}

/// Returns true for the wanted push. Other fields may have changed since.
fn is_same_push(push: &PushBranch, wanted: &PushBranch) -> bool {
    (&push.head, &push.branch) == (&wanted.head, &wanted.branch)
}

/// Returns true if the change needs no pull request. An incomplete change needs one, and an existing one is
/// continued.
fn ends_ticket(state: &RunState, request: &JobRequest) -> bool {
    request.job == Job::Implement
        && request.rules.agent.finish == Finish::Done
        && request.repository.local_folder().is_none()
        && state.cut_short().is_none()
        && state.proof().and_then(Proof::failure).is_none()
        && state.work().pull_request.is_none()
}

fn close(state: &RunState, request: &JobRequest, wanted: PushBranch, handover: &Handover) -> Step {
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::WorkDelivered(delivered) if is_same_push(&delivered.push, &wanted));
    match state.last_report(is_it) {
        Some(asked) => settled(state, asked),
        None => {
            let description = Box::new(describe(state, request, handover));
            let delivered = report::WorkDelivered {
                push: wanted,
                description,
            };
            ask(state, ReportRequest::WorkDelivered(delivered), None).into()
        }
    }
}

/// Returns the step for a pending or unsuccessful report.
fn settled(state: &RunState, asked: &ReportState) -> Step {
    match &asked.outcome {
        Some(ReportOutcome::Refused(refusal)) => refused(state, refusal),
        Some(ReportOutcome::Done(_) | ReportOutcome::Failed { .. }) | None => {
            await_report(state, &asked.id, WaitsFor::Report)
        }
    }
}

/// Handles a refused push. On a pull request's branch a foreign push wins: the work restarts on its commit.
fn refused(state: &RunState, refusal: &Refusal) -> Step {
    let on_a_pull_request = state
        .request()
        .is_some_and(|request| request.about.pull_request().is_some());
    match refusal {
        Refusal::BranchMoved { head, .. } if on_a_pull_request => {
            let begins_again = head.as_ref().and_then(|head| state.moved_to(head));
            begins_again.map_or_else(
                || Step::Close(StopReason::ReportRefused(refusal.clone())),
                |fact| Action::Record(fact).into(),
            )
        }
        _ => back(state, Return::Refused(refusal.clone())),
    }
}

fn open(state: &RunState, request: &JobRequest) -> Step {
    let (Some((branch, _)), Some(handover)) = (&state.work().pushed, state.handover()) else {
        return back(state, Return::NothingChanged);
    };
    let naming = Naming::new(&request.rules, state.run.ticket());
    let title = naming.title(naming.of(handover, &request.text.kind));
    let wanted = ReportRequest::OpenPullRequest(report::OpenPullRequest {
        repository: request.repository.clone(),
        branch: branch.clone(),
        base_branch: request.rules.target_branch().to_owned(),
        title,
        body: String::new(),
        description: Some(Box::new(describe(state, request, handover))),
    });
    ask(state, wanted, None).into()
}

/// Returns the push that brings the stored commit to the remote; `None` without a commit.
pub(super) fn wanted_push(state: &RunState, request: &JobRequest) -> Option<PushBranch> {
    let work = state.work();
    let kept = work.snapshot.as_ref()?;
    let branch = free_name(state, kept.branch.as_deref()?);
    let pushed = work.pushed.as_ref().filter(|(pushed, _)| *pushed == branch);
    Some(PushBranch {
        repository: request.repository.clone(),
        expected: pushed.map(|(_, head)| head.clone()),
        branch,
        base: kept.base.clone(),
        head: kept.head.clone().filter(|head| *head != kept.base)?,
        pack: kept.pack.clone(),
        scope: scope_of(state, request),
    })
}

/// Returns the name for a pushed branch: its own, or the first alternative that the remote has not refused.
fn free_name(state: &RunState, own: &str) -> String {
    let mut name = own.to_owned();
    for number in 2..MAX_NAMES + 2 {
        let Some(refusal) = name_refusal(state, &name) else {
            return name;
        };
        // A number is enough, unless the folder of the name conflicts: `fix` excludes all of `fix/…`.
        let is_folder = matches!(refusal, Refusal::BranchInTheWay { by, .. }
            if by.is_empty() || name.strip_prefix(by.as_str()).is_some_and(|rest| rest.starts_with('/')));
        let is_flat = !name.contains('/');
        name = match is_folder && !is_flat {
            true => name.replace('/', "-"),
            false if is_flat => format!("{}-{number}", own.replace('/', "-")),
            false => format!("{own}-{number}"),
        };
    }
    name
}

/// Returns the reason that the remote refused a new branch of this name.
fn name_refusal<'a>(state: &'a RunState, name: &str) -> Option<&'a Refusal> {
    state.reports.iter().find_map(|report| {
        let push = match &report.request {
            ReportRequest::PushBranch(push) => push,
            ReportRequest::WorkDelivered(delivered) => &delivered.push,
            _ => return None,
        };
        match &report.outcome {
            Some(ReportOutcome::Refused(refusal))
                if push.branch == name && push.expected.is_none() && is_about_name(refusal) =>
            {
                Some(refusal)
            }
            Some(_) | None => None,
        }
    })
}

/// Returns true if another name helps, because the remote does not refuse the work itself.
fn is_about_name(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::BranchInTheWay { .. }
            | Refusal::ForeignBranch { .. }
            | Refusal::BranchOfAnotherTicket { .. }
            | Refusal::BranchMoved { .. }
    )
}

/// Returns the scope of the change, where the rules have modules.
fn scope_of(state: &RunState, request: &JobRequest) -> Option<ScopeOf> {
    (!request.rules.modules.is_empty()).then(|| ScopeOf {
        kind: request.text.kind.clone(),
        widened: widen_scope::widened(state, request),
    })
}
