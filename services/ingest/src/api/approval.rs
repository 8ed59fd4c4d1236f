//! Approval gate: the change that a run would push, and a user's decision about that commit.

use std::convert::Infallible;

use api::types::{Accepted, DecisionBody, DryRun, ProblemView, Would};
use axum::{
    Json,
    body::Body,
    extract::{
        Query, State,
        rejection::{JsonRejection, QueryRejection},
    },
    http::header,
    response::{IntoResponse, Response},
};
use domain::{CommitId, Entry, Fact, ObjectRef, Receipt, ReportOutcome, RunId, Source, TriggerKey, Verdict};
use futures::stream;
use queue::Appended;

use super::{
    ApiState, Operator, Problem, Viewer,
    auth::InScope,
    decisions::{accepted, would},
    runs::find,
};
use crate::{
    command::SHORTEST,
    gates::{is_about_gate, last_shown, open_gate},
    kinds::decided::Decided,
    outcome::Outcome,
};

/// Decides at the approval gate of a run.
#[utoipa::path(post, path = "/v1/runs/{id}/decision", request_body = DecisionBody,
    params(("id" = String, Path, description = "Percent-encoded run id."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView), (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "The run does not wait for a decision about this commit.")))]
pub(super) async fn decide(
    InScope(Operator(caller), run): InScope<Operator, RunId>,
    State(state): State<ApiState>,
    dry: Result<Query<DryRun>, QueryRejection>,
    body: Result<Json<DecisionBody>, JsonRejection>,
) -> Result<Response, Problem> {
    let (Json(body), Query(DryRun { dry_run })) = (body?, dry?);
    if body.feedback.chars().count() > DecisionBody::FEEDBACK_CHARS {
        return Err(Problem::Unprocessable(
            "feedback must be at most 8000 characters".to_owned(),
        ));
    }
    let router = state.router()?;
    // A missing run must be a 404 instead of a conflict.
    find(&state, &caller, &run).await?;
    names_enough(&body, &run)?;
    let in_words = dry_run.then(|| answer_in_words(&body, &run));
    let decided = Decided {
        ticket: run.ticket().clone(),
        key: TriggerKey::new(String::new()),
        at: bootstrap::now(),
        by: caller.name,
        verdict: body.verdict,
        head: body.head.trim().to_ascii_lowercase(),
        feedback: body.feedback,
        run: Some(run),
    };
    if let Some(in_words) = in_words {
        return match Box::pin(router.judge(&decided, Source::Api)).await? {
            Ok(_) => Ok(would([in_words])),
            Err(outcome) => Err(refused(&outcome)),
        };
    }
    let outcome = Box::pin(router.take(&decided, Source::Api)).await?;
    match &outcome {
        Outcome::Appended {
            trigger,
            appended: Appended::New(_),
        } => Ok(accepted(&trigger.ticket, &trigger.key, &outcome)?.into_response()),
        outcome => Err(refused(outcome)),
    }
}

/// Problem for a rejected decision.
fn refused(outcome: &Outcome) -> Problem {
    Problem::Conflict(match outcome {
        Outcome::Appended { .. } | Outcome::Known(_) => "somebody has decided already".to_owned(),
        Outcome::Nothing(_) | Outcome::NoChecks | Outcome::NothingFailed => outcome.why_nothing().to_owned(),
    })
}

fn answer_in_words(body: &DecisionBody, run: &RunId) -> String {
    let head = body.head.trim();
    match body.verdict {
        Verdict::Approve => format!("approve {head}, and run {run} would go on with it"),
        Verdict::Reject => format!("reject what run {run} asks about, and the run would end"),
        Verdict::Revise => format!("send run {run} back to change it: {}", body.feedback.trim()),
    }
}

/// Returns the whole change that a user was last asked about, as text in git's format.
#[utoipa::path(get, path = "/v1/runs/{id}/diff",
    params(("id" = String, Path, description = "Percent-encoded run id.")), security(("bearer" = [])),
    responses((status = 200, body = String, content_type = "text/x-diff"),
        (status = 404, body = ProblemView, description = "No change of this run was shown to a person."),
        (status = 429, body = ProblemView)))]
pub(super) async fn diff(
    InScope(Viewer(caller), run): InScope<Viewer, RunId>,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, Problem> {
    let router = state.router()?;
    find(&state, &caller, &run).await?;
    let permit = state.reads.begin(&caller.name).await?;
    let read = router.queue.triggers().read_each_after(run.ticket(), 0).await?;
    let shown = match last_shown(&run, read.iter().filter_map(|(_, trigger)| trigger.as_ref().ok())) {
        Some(shown) => Some(shown),
        None => decided_before(&router.queue.journal().read_kept(&run, is_about_gate).await?),
    };
    let (head, object) =
        shown.ok_or_else(|| Problem::NotFound(format!("no change of run {run} was shown for a decision")))?;
    let text = router.queue.objects().get(&object).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/x-diff; charset=utf-8".to_owned()),
        (header::ETAG, format!("\"{head}\"")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    // A diff may be long. The permit lasts until the last byte is sent.
    let text = stream::once(async move {
        let _permit = permit;
        Ok::<_, Infallible>(text)
    });
    Ok((headers, Body::from_stream(text)))
}

/// Requires the commit for an approval, so that no user approves an unseen change.
fn names_enough(body: &DecisionBody, run: &RunId) -> Result<(), Problem> {
    let named = body.head.trim();
    let needs_none = named.is_empty() && body.verdict != Verdict::Approve;
    if needs_none || named.len() >= SHORTEST {
        return Ok(());
    }
    Err(Problem::Unprocessable(format!(
        "name the commit that you decide about with at least {SHORTEST} characters in `head`; read it first (`journeyman \
         diff {run}`)"
    )))
}

/// Last decided change in the journal. It outlives the triggers, which are kept for 30 days. `None`
/// while a decision is open: only the reporter's triggers prove what users were shown.
fn decided_before(journal: &[Entry]) -> Option<(CommitId, ObjectRef)> {
    if open_gate(journal.iter()).is_some() {
        return None;
    }
    journal.iter().rev().find_map(|entry| match &entry.fact {
        Fact::ReportSettled {
            outcome: ReportOutcome::Done(Receipt::DecisionAsked { head, diff }),
            ..
        } => Some((head.clone(), diff.clone())),
        _ => None,
    })
}
