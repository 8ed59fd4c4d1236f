//! Creates branch and commit for the change, named by the rules. Commits of the model stay.

use domain::{About, JobRequest, Named, Naming, Refusal, Return, ToolStatus};
use serde_json::{Value, json};

use super::back::back;
use crate::run::machine::{Action, COMMIT_CHANGES, PhaseSpec, RunState, Step, carry_on, own_call};

const CREATE_BRANCH: &str = "create_branch";

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let (Some(request), Some(handover)) = (state.request(), state.handover()) else {
        return Step::Over;
    };
    if let Some(reason) = state.cut_short().filter(|_| !request.about.is_ticket()) {
        // A draft of a new change helps users; half a repair on an existing branch does not.
        return Step::Close(reason.clone());
    }
    if let Some(call) = state.open_own_call() {
        return carry_on(state, call);
    }
    let ticket = state.run.ticket();
    let naming = Naming::new(&request.rules, ticket);
    let named = naming.of(handover, &request.text.kind);
    let work = state.work();
    if work.branch.is_none() && state.own(CREATE_BRANCH).is_none() {
        return wanted(
            state,
            CREATE_BRANCH,
            &json!({ "branch_name": branch(request, &naming, named) }),
        );
    }
    if let Some(refusal) = refused(state, CREATE_BRANCH).filter(|_| work.branch.is_none()) {
        return back(state, Return::Refused(refusal));
    }
    if state.own(COMMIT_CHANGES).is_none() {
        let requester = request.background.requester.as_ref();
        let trailers = naming.trailers(&state.run, requester).join("\n");
        let message = format!(
            "{}\n\n{trailers}",
            naming.commit_message(named, &handover.summary)
        );
        let mut input = json!({ "message": message });
        // The reporter checks every commit, so a refused file must not stay beneath a corrected commit.
        if work.may_replace_head() {
            input["amend"] = Value::Bool(true);
        }
        return wanted(state, COMMIT_CHANGES, &input);
    }
    if work.dirty {
        return Action::TakeSnapshot.into();
    }
    if let Some(reason) = work.unkept.clone() {
        return back(state, Return::Unkept { reason });
    }
    let kept = work.snapshot.as_ref();
    let has_commit = kept.is_some_and(|kept| kept.head.as_ref().is_some_and(|head| *head != kept.base));
    match refused(state, COMMIT_CHANGES) {
        _ if has_commit => Step::Over,
        Some(refusal) if kept.is_some_and(|kept| kept.files_changed > 0) => {
            back(state, Return::Refused(refusal))
        }
        // A review may be addressed by replies alone.
        _ if matches!(request.about, About::Review(_)) => Step::Over,
        _ => back(state, Return::NothingChanged),
    }
}

/// Returns the branch of the continued pull request, else a new name.
fn branch(request: &JobRequest, naming: &Naming<'_>, named: Named<'_>) -> String {
    match request.about.pull_request() {
        Some((pull_request, _)) => pull_request.branch.clone(),
        None => naming.branch(named),
    }
}

fn wanted(state: &RunState, name: &str, input: &Value) -> Step {
    own_call(state, name, input).into()
}

/// Returns the refusal of a planner's call.
fn refused(state: &RunState, name: &str) -> Option<Refusal> {
    let result = state.own_result(name)?;
    (result.status != ToolStatus::Ok).then(|| Refusal::Workspace {
        detail: result.content.clone(),
    })
}
