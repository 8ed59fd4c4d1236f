//! Creates branch and commit for the change, named by the rules. Commits of the model stay.

use domain::{
    ChangeNameParts, ChangeNaming, JobRequest, JobSubject, OutboundRefusal, PolicyViolation, ReturnReason,
    ToolStatus,
};
use serde_json::{Value, json};

use super::rework::go_back_to_work;
use crate::run::machine::{
    COMMIT_CHANGES, PhaseSpec, PlannerRunState, RunAction, RunStep, resume_call, start_own_call,
};

const CREATE_BRANCH: &str = "create_branch";

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::without_dialog(decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    let (Some(request), Some(handover)) = (state.request(), state.outputs().handover()) else {
        return RunStep::Over;
    };
    if let Some(reason) = state.outputs().cut_short().filter(|_| !request.about.is_ticket()) {
        // A draft of a new change helps users; half a repair on an existing branch does not.
        return RunStep::Close(reason.clone());
    }
    if let Some(call) = state.open_own_call() {
        return resume_call(state, call);
    }
    let ticket = state.run.ticket();
    let naming =
        ChangeNaming::new(&request.rules, ticket).with_patterns(state.delivery().required_patterns());
    let named = naming.of(handover, &request.text.kind);
    let work = state.source().work();
    if work.branch.is_none() && state.own_calls().find(CREATE_BRANCH).is_none() {
        return own_call_step(
            state,
            CREATE_BRANCH,
            &json!({ "branch_name": target_branch_name(request, &naming, named) }),
        );
    }
    if let Some(refusal) = refusal_of_call(state, CREATE_BRANCH).filter(|_| work.branch.is_none()) {
        return go_back_to_work(state, ReturnReason::Refused(refusal));
    }
    if state.own_calls().find(COMMIT_CHANGES).is_none() {
        let requester = request.background.requester.as_ref();
        let made = naming.commit_message_of_run(named, &handover.summary, &state.run, requester);
        let message = match made {
            Ok(message) => message,
            Err(pattern) => {
                let violation = PolicyViolation::Pattern {
                    requires: pattern.clone(),
                    commit: String::new(),
                };
                return go_back_to_work(state, ReturnReason::Refused(violation.into()));
            }
        };
        let mut input = json!({ "message": message });
        // The reporter checks every commit, so a refused file must not stay beneath a corrected commit.
        if work.may_replace_head() {
            input["amend"] = Value::Bool(true);
        }
        return own_call_step(state, COMMIT_CHANGES, &input);
    }
    if work.dirty {
        return RunAction::TakeSnapshot.into();
    }
    if let Some(reason) = work.unkept.clone() {
        return go_back_to_work(state, ReturnReason::Unkept { reason });
    }
    let kept = work.snapshot.as_ref();
    let has_commit = kept.is_some_and(|kept| kept.head.as_ref().is_some_and(|head| *head != kept.base));
    match refusal_of_call(state, COMMIT_CHANGES) {
        _ if has_commit => RunStep::Over,
        Some(refusal) if kept.is_some_and(|kept| kept.files_changed > 0) => {
            go_back_to_work(state, ReturnReason::Refused(refusal))
        }
        // A review may be addressed by replies alone.
        _ if matches!(request.about, JobSubject::Review(_)) => RunStep::Over,
        _ => go_back_to_work(state, ReturnReason::NothingChanged),
    }
}

/// Returns the branch of the continued pull request, else a new name.
fn target_branch_name(request: &JobRequest, naming: &ChangeNaming<'_>, named: ChangeNameParts<'_>) -> String {
    match request.about.pull_request() {
        Some((pull_request, _)) => pull_request.branch.clone(),
        None => naming.branch(named),
    }
}

fn own_call_step(state: &PlannerRunState, name: &str, input: &Value) -> RunStep {
    start_own_call(state, name, input).into()
}

/// Returns the refusal of a planner's call.
fn refusal_of_call(state: &PlannerRunState, name: &str) -> Option<OutboundRefusal> {
    let result = state.own_calls().result(name)?;
    (result.status != ToolStatus::Ok).then(|| OutboundRefusal::Workspace {
        detail: result.content.clone(),
    })
}
