use api::types::{DeadDetail, DeadView, DryRun, ProblemView, Would};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::{MaintenanceOutcome, MaintenanceTask, RecordKind};
use queue::DeadLetter;

use super::{
    ApiProblem, ApiQuery, ApiState, OperatorProof, ViewerProof,
    decisions::{request_retry as retry_ticket, respond_to_dry_run, would_retry},
    maintenance::{check_maintenance_outcome, order_maintenance},
    scope::TokenCaller,
};
use crate::router::EventRouter;

const LISTED: usize = 200;
const BODY_BYTES: usize = 64 * 1024;

/// Lists dead letters, newest last, at most 200.
#[utoipa::path(get, path = "/v1/dead", security(("bearer" = [])),
    responses((status = 200, body = Vec<DeadView>)))]
pub(super) async fn list_dead_letters(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<Vec<DeadView>>, ApiProblem> {
    let letters = state.router()?.queue.dead_letters();
    // A token with few visible letters makes ingest read many, so the read waits for its turn.
    let _permit = state.reads.begin(&caller.name).await?;
    // The limit counts letters in the caller's scope, otherwise newer letters of others would hide them.
    let visible = letters.list_matching(LISTED, |letter| is_letter_visible(&caller, letter));
    Ok(Json(visible.await?.into_iter().map(build_letter_view).collect()))
}

/// Shows one dead letter with the record that it is about.
#[utoipa::path(get, path = "/v1/dead/{sequence}", security(("bearer" = [])),
    params(("sequence" = u64, Path, description = "Its place.")),
    responses((status = 200, body = DeadDetail), (status = 404, body = ProblemView)))]
pub(super) async fn show_dead_letter(
    OperatorProof(caller): OperatorProof,
    State(state): State<ApiState>,
    Path(sequence): Path<u64>,
) -> Result<Json<DeadDetail>, ApiProblem> {
    let (letter, body) = find_visible_letter(state.router()?, &caller, sequence).await?;
    let body = String::from_utf8_lossy(&body[..body.len().min(BODY_BYTES)]).into_owned();
    Ok(Json(DeadDetail {
        letter: build_letter_view((sequence, letter)),
        body,
    }))
}

/// Retries a dead letter: routes a delivery again, resumes a quarantined ticket, or hands over an unreadable trigger or
/// report again. The letter is then deleted.
#[utoipa::path(post, path = "/v1/dead/{sequence}/retry", security(("bearer" = [])),
    params(("sequence" = u64, Path, description = "Its place."), DryRun),
    responses((status = 204), (status = 200, body = Would), (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "It cannot be tried again."),
        (status = 503, body = ProblemView, description = "The reporter, which does it, has not answered yet.")))]
pub(super) async fn retry_dead_letter(
    OperatorProof(caller): OperatorProof,
    State(state): State<ApiState>,
    Path(sequence): Path<u64>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let router = state.router()?;
    let letters = router.queue.dead_letters();
    let (letter, _) = find_visible_letter(router, &caller, sequence).await?;
    if dry_run {
        let tried = describe_retry(router, letter, caller.name).await?;
        return Ok(respond_to_dry_run([tried, describe_deletion(sequence)]));
    }
    // The reporter deletes the letter, because ingest's NATS account deletes nothing.
    let drop_letter = MaintenanceTask::DropLetter { letter: sequence };
    let (what, by) = (letter.what, caller.name.clone());
    let task = match (what, letter.ticket) {
        (RecordKind::Ticket, Some(ticket)) => {
            let _ = retry_ticket(router, ticket, caller.name).await?;
            drop_letter
        }
        (RecordKind::Delivery | RecordKind::Trigger, _) if letters.resend(sequence).await? => drop_letter,
        // Only the reporter may write reports, so it restores them itself.
        (RecordKind::Report, _) => MaintenanceTask::ReviveReport { letter: sequence },
        (what, _) => return Err(refuse_letter_retry(what)),
    };
    let outcome = order_maintenance(&router.queue, &by, task).await?;
    // Another caller may have deleted the letter meanwhile. The record was handed over all the same.
    if outcome != MaintenanceOutcome::Missing || what == RecordKind::Report {
        check_maintenance_outcome(outcome, || refuse_letter_retry(what))?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Description of a retry for a dry run. A missing body shows only when the retry runs.
async fn describe_retry(
    router: &EventRouter,
    letter: DeadLetter,
    actor: String,
) -> Result<String, ApiProblem> {
    match (letter.what, letter.ticket) {
        (RecordKind::Ticket, Some(ticket)) => would_retry(router, ticket, actor).await,
        (what @ (RecordKind::Delivery | RecordKind::Trigger | RecordKind::Report), _) => {
            Ok(format!("hand over the {what} {} again", letter.id))
        }
        (what, _) => Err(refuse_letter_retry(what)),
    }
}

fn refuse_letter_retry(what: RecordKind) -> ApiProblem {
    ApiProblem::Conflict(format!(
        "this {what} cannot be tried again; ask for a retry of its ticket, or drop it"
    ))
}

fn describe_deletion(sequence: u64) -> String {
    format!("forget dead letter {sequence}")
}

/// Deletes a dead letter.
#[utoipa::path(delete, path = "/v1/dead/{sequence}", security(("bearer" = [])),
    params(("sequence" = u64, Path, description = "Its place."), DryRun),
    responses((status = 204), (status = 200, body = Would), (status = 404, body = ProblemView),
        (status = 503, body = ProblemView, description = "The reporter, which drops it, has not answered yet.")))]
pub(super) async fn delete_dead_letter(
    OperatorProof(caller): OperatorProof,
    State(state): State<ApiState>,
    Path(sequence): Path<u64>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let router = state.router()?;
    find_visible_letter(router, &caller, sequence).await?;
    if dry_run {
        return Ok(respond_to_dry_run([describe_deletion(sequence)]));
    }
    let task = MaintenanceTask::DropLetter { letter: sequence };
    let outcome = order_maintenance(&router.queue, &caller.name, task).await?;
    check_maintenance_outcome(outcome, || report_missing_letter(sequence))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Letter with its body, when it exists within the caller's scope.
async fn find_visible_letter(
    router: &EventRouter,
    caller: &TokenCaller,
    sequence: u64,
) -> Result<(DeadLetter, Bytes), ApiProblem> {
    let found = router.queue.dead_letters().get(sequence).await?;
    found
        .filter(|(letter, _)| is_letter_visible(caller, letter))
        .ok_or_else(|| report_missing_letter(sequence))
}

/// True when the letter is in the caller's scope. A letter without a known ticket may belong to any repository, so a
/// limited token does not see it.
fn is_letter_visible(caller: &TokenCaller, letter: &DeadLetter) -> bool {
    match &letter.ticket {
        Some(ticket) => caller.scope.has_ticket(ticket),
        None => caller.scope.is_all(),
    }
}

fn report_missing_letter(sequence: u64) -> ApiProblem {
    ApiProblem::NotFound(format!("there is no dead letter {sequence}"))
}

fn build_letter_view((sequence, letter): (u64, DeadLetter)) -> DeadView {
    DeadView {
        sequence,
        what: letter.what.to_string(),
        id: letter.id,
        ticket: letter.ticket.map(|ticket| ticket.to_string()),
        reason: letter.reason,
        at: letter.at.to_string(),
    }
}
