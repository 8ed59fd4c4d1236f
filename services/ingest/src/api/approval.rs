//! The approval gate: what a run would push, and a person's decision about that commit.

use axum::{
    Json,
    extract::{Path, State, rejection::JsonRejection},
    http::header,
    response::IntoResponse,
};
use domain::{CommitId, Entry, Fact, ObjectRef, Reason, Receipt, ReportOutcome, RunId, Verdict};
use queue::Appended;

use super::{
    ApiState, Operator, Problem, Viewer,
    decisions::{Answer, append},
    runs::find,
    types::{Accepted, DecisionBody, ProblemView},
};
use crate::gates::open_gate;

/// The shortest abbreviation of a commit that counts, in characters.
const SHORTEST_ABBREVIATION: usize = 7;

/// Decides at the approval gate of a run.
#[utoipa::path(post, path = "/v1/runs/{id}/decision", request_body = DecisionBody,
    params(("id" = String, Path, description = "Percent-encoded run id.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView), (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "The run does not wait for a decision about this commit.")))]
pub(super) async fn decide(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    body: Result<Json<DecisionBody>, JsonRejection>,
) -> Answer {
    let Json(body) = body?;
    if body.feedback.chars().count() > DecisionBody::FEEDBACK_CHARS {
        return Err(Problem::Unprocessable(
            "feedback must be at most 8000 characters".to_owned(),
        ));
    }
    let run: RunId = id.parse()?;
    let router = state.router()?;
    find(router, &run).await?;
    let entries = router.queue.journal().read(&run).await?;
    let waits = || Problem::Conflict(format!("run {run} does not wait for a decision"));
    let gate = open_gate(entries.iter().map(|(_, entry)| entry)).ok_or_else(waits)?;
    is_about(&body, &gate.head, &run)?;
    let key = gate.key(&run);
    let reason = Reason::Decided(body.into_decision(run.clone(), gate.head));
    let (appended, accepted) = append(router, run.ticket(), key, caller.name, reason).await?;
    match appended {
        Appended::New(_) => Ok(accepted),
        Appended::Known(_) => Err(Problem::Conflict("somebody has decided already".to_owned())),
    }
}

/// Gives the whole change that a person was asked about last, as text in git's format.
#[utoipa::path(get, path = "/v1/runs/{id}/diff",
    params(("id" = String, Path, description = "Percent-encoded run id.")), security(("bearer" = [])),
    responses((status = 200, body = String, content_type = "text/x-diff"),
        (status = 404, body = ProblemView, description = "No change of this run was shown to a person.")))]
pub(super) async fn diff(
    _: Viewer,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let run: RunId = id.parse()?;
    let router = state.router()?;
    find(router, &run).await?;
    let entries = router.queue.journal().read(&run).await?;
    let shown = last_shown(entries.iter().map(|(_, entry)| entry));
    let (head, object) =
        shown.ok_or_else(|| Problem::NotFound(format!("no change of run {run} was shown for a decision")))?;
    let text = router.queue.objects().get(&object).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/x-diff; charset=utf-8".to_owned()),
        (header::ETAG, format!("\"{head}\"")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, text))
}

/// An approval has to name the commit, so that nobody approves what he has not seen.
fn is_about(body: &DecisionBody, head: &CommitId, run: &RunId) -> Result<(), Problem> {
    let named = body.head.trim().to_ascii_lowercase();
    if named.is_empty() && body.verdict != Verdict::Approve {
        return Ok(());
    }
    if named.len() < SHORTEST_ABBREVIATION {
        return Err(Problem::Unprocessable(format!(
            "name the commit that you decide about with at least {SHORTEST_ABBREVIATION} characters in `head`; read it \
             first (`journeyman diff {run}`)"
        )));
    }
    if head.as_str().starts_with(&named) {
        Ok(())
    } else {
        Err(Problem::Conflict(format!(
            "run {run} waits for a decision about commit {}, not about {named}; read it first (`journeyman diff {run}`)",
            head.short()
        )))
    }
}

/// The commit that was shown last, and its difference.
fn last_shown<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<(CommitId, ObjectRef)> {
    entries
        .filter_map(|entry| match &entry.fact {
            Fact::ReportSettled {
                outcome: ReportOutcome::Done(Receipt::DecisionAsked { head, diff }),
                ..
            } => Some((head.clone(), diff.clone())),
            _ => None,
        })
        .last()
}
