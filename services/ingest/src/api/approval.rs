//! Approval gate: a user's decision about the commit that a run would push.

use std::time::Duration;

use api::types::{Accepted, DecisionBody, DryRun, ProblemView, Would};
use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    response::{IntoResponse, Response},
};
use domain::{DecisionVerdict, RunId, TriggerChannel, TriggerKey};
use queue::AppendOutcome;
use tokio::time::{Instant, sleep};

use super::{
    ApiProblem, ApiQuery, ApiState, OperatorProof,
    auth::InScope,
    decisions::{respond_accepted, respond_to_dry_run},
    runs::find_run,
};
use crate::{
    events::decision::DecisionEvent,
    router::{
        EventDecision, EventRouter,
        outcome::{EventFailure, EventOutcome},
    },
    text::command::SHORTEST,
};

// Time for a run that has asked to wait for the decision, and the pause between two reads of its journal.
const PATIENCE: Duration = Duration::from_secs(5);
const READ_EVERY: Duration = Duration::from_millis(250);

/// Decides at the approval gate of a run.
#[utoipa::path(post, path = "/v1/runs/{id}/decision", request_body = DecisionBody,
    params(("id" = String, Path, description = "Percent-encoded run id."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView), (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "The run does not wait for a decision about this commit.")))]
pub(super) async fn decide_at_gate(
    InScope(OperatorProof(caller), run): InScope<OperatorProof, RunId>,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
    body: Result<Json<DecisionBody>, JsonRejection>,
) -> Result<Response, ApiProblem> {
    let Json(body) = body?;
    if body.feedback.chars().count() > DecisionBody::FEEDBACK_CHARS {
        return Err(ApiProblem::Unprocessable(
            "feedback must be at most 8000 characters".to_owned(),
        ));
    }
    let router = state.router()?;
    // A missing run must be a 404 instead of a conflict.
    find_run(&state, &caller, &run).await?;
    require_head(&body, &run)?;
    let in_words = dry_run.then(|| answer_in_words(&body, &run));
    let decided = DecisionEvent {
        ticket: run.ticket().clone(),
        key: TriggerKey::new(String::new()),
        at: bootstrap::read_wall_clock(),
        by: caller.name,
        verdict: body.verdict,
        head: body.head.trim().to_ascii_lowercase(),
        feedback: body.feedback,
        run: Some(run),
    };
    let follows = match judge_decision(router, &decided).await? {
        EventDecision::Trigger(follows) => follows,
        EventDecision::Outcome(outcome) => return Err(explain_refusal(&outcome)),
    };
    if let Some(in_words) = in_words {
        return Ok(respond_to_dry_run([in_words]));
    }
    let outcome = router.append(follows.into_trigger(TriggerChannel::Api)).await?;
    let EventOutcome::Appended {
        trigger,
        appended: AppendOutcome::New(_),
    } = &outcome
    else {
        return Err(explain_refusal(&outcome));
    };
    Ok(respond_accepted(&trigger.ticket, &trigger.key, &outcome)?.into_response())
}

/// Judges a decision. A user may answer a question before its run has parked, so an early decision waits for the run.
async fn judge_decision(router: &EventRouter, decided: &DecisionEvent) -> Result<EventDecision, ApiProblem> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match Box::pin(router.judge(decided, TriggerChannel::Api)).await {
            Err(EventFailure::Early(_)) if Instant::now() < give_up => sleep(READ_EVERY).await,
            Err(EventFailure::Early(reason)) => {
                return Err(ApiProblem::Conflict(format!("{reason}; try again")));
            }
            judged => return Ok(judged?),
        }
    }
}

/// Problem for a rejected decision.
fn explain_refusal(outcome: &EventOutcome) -> ApiProblem {
    ApiProblem::Conflict(match outcome {
        EventOutcome::Appended { .. } | EventOutcome::Known(_) => "somebody has decided already".to_owned(),
        EventOutcome::Nothing(_) | EventOutcome::NoChecks | EventOutcome::NothingFailed => {
            outcome.why_nothing().to_owned()
        }
    })
}

fn answer_in_words(body: &DecisionBody, run: &RunId) -> String {
    let head = body.head.trim();
    match body.verdict {
        DecisionVerdict::Approve => format!("approve {head}, and run {run} would continue with it"),
        DecisionVerdict::Reject => format!("reject what run {run} asks about, and the run would end"),
        DecisionVerdict::Revise => format!("send run {run} back to change it: {}", body.feedback.trim()),
    }
}

/// Requires the commit for an approval, so that no user approves an unseen change.
fn require_head(body: &DecisionBody, run: &RunId) -> Result<(), ApiProblem> {
    let named = body.head.trim();
    let needs_none = named.is_empty() && body.verdict != DecisionVerdict::Approve;
    if needs_none || named.len() >= SHORTEST {
        return Ok(());
    }
    Err(ApiProblem::Unprocessable(format!(
        "name the commit that you decide about with at least {SHORTEST} characters in `head`; read it first (`journeyman \
         diff {run}`)"
    )))
}
