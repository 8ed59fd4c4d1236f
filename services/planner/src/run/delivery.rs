//! What leaves the workspace: the push, with a person's consent where the rules want it, and the pull request.

use domain::{
    Approval, JobRequest, PushBranch, ReportId, ReportOutcome, ReportRequest, Snapshot, StopReason,
    ToolResult, Verdict, WaitsFor,
};

use super::retry::await_report;
use super::state::{Call, RunState};
use super::step::{Action, answer, ask, close, park};
use crate::prompts;

pub(super) fn push(state: &RunState, request: &JobRequest, call: &Call) -> Action {
    if state.work().dirty {
        return Action::TakeSnapshot;
    }
    if let Some(reason) = &state.work().unkept {
        return answer(state, call, ToolResult::error(prompts::unkept(reason)));
    }
    let Some(wanted) = state
        .work()
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
    if request.rules.agent.approval == Approval::BeforePush && state.approved.as_ref() != Some(&wanted.head) {
        return gate(state, call, wanted);
    }
    ask(state, ReportRequest::PushBranch(wanted), Some(call))
}

fn to_push(state: &RunState, request: &JobRequest, kept: &Snapshot) -> Option<PushBranch> {
    let branch = kept.branch.clone()?;
    let expected = state
        .work()
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

fn gate(state: &RunState, call: &Call, wanted: PushBranch) -> Action {
    let Some((decision, by)) = &state.decision else {
        return match &call.gate {
            None => ask(state, ReportRequest::DecisionNeeded(wanted), Some(call)),
            Some(asked) if is_done(state, asked) => park(state, WaitsFor::Decision),
            Some(asked) => await_report(state, asked, WaitsFor::Report),
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

fn is_done(state: &RunState, report: &ReportId) -> bool {
    let outcome = state.report(report).and_then(|report| report.outcome.as_ref());
    matches!(outcome, Some(ReportOutcome::Done(_)))
}

pub(super) fn open_pull_request(
    state: &RunState,
    request: &JobRequest,
    call: &Call,
    title: String,
    body: String,
) -> Action {
    if let Some(opened) = &state.work().pull_request {
        return answer(
            state,
            call,
            ToolResult::ok(format!("The pull request is open already: {}", opened.url)),
        );
    }
    let Some((branch, _)) = &state.work().pushed else {
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
