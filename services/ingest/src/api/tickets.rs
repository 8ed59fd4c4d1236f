use api::types::{
    Accepted, CommentBody, ConversationLockView, DryRun, ProblemView, PullRequestView, TicketView, Would,
};
use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{
    MaintenanceTask, ObservedPullRequest, PullRequestRef, TextMarkup, TicketKey, TicketRow, Trigger,
    TriggerChannel, TriggerKey, TriggerReason,
};
use queue::{FoundValue, KeyValueBucket, Queue};

use super::{
    AdminProof, ApiProblem, ApiQuery, ApiState, OperatorProof, ViewerProof,
    auth::InScope,
    decisions::{AcceptedAnswer, respond_accepted, respond_to_dry_run},
    maintenance::{check_maintenance_outcome, order_maintenance},
    ticket_key::TicketScoped,
};
use crate::{
    events::comment::CommentEvent, health::store::read_health, router::conversation_locks::read_lock,
};

/// Shows one ticket with its runs.
#[utoipa::path(get, path = "/v1/tickets/{key}",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 200, body = TicketView), (status = 404, body = ProblemView)))]
pub(super) async fn show_ticket(
    InScope(_viewer, ticket): InScope<ViewerProof, TicketKey>,
    State(state): State<ApiState>,
) -> Result<Json<TicketView>, ApiProblem> {
    let queue = &state.router()?.queue;
    let row = queue
        .table::<TicketRow>(KeyValueBucket::Tickets)
        .get(&ticket.to_string())
        .await?
        .map(|(row, _)| row);
    let triggers = queue.triggers().read_each_after(&ticket, 0).await?;
    // A ticket has triggers before a planner creates its row, and a row after its triggers have aged out.
    if row.is_none() && triggers.is_empty() {
        return Err(ticket.unknown());
    }
    let row = row.unwrap_or_default();
    let last_skip = triggers
        .iter()
        .rev()
        .filter_map(|(_, trigger)| trigger.as_ref().ok())
        .find_map(|trigger| {
            let TriggerReason::Skipped(reason) = &trigger.reason else {
                return None;
            };
            Some(reason.words(&TextMarkup::PLAIN))
        });
    let known: Vec<_> = triggers
        .iter()
        .filter_map(|(_, trigger)| trigger.as_ref().ok())
        .collect();
    let standing = list_pull_request_views(queue, &row.pull_requests, &known).await?;
    Ok(Json(TicketView {
        ticket: ticket.to_string(),
        runs: row.runs.iter().map(Into::into).collect(),
        standing,
        pull_requests: row.pull_requests,
        due: row.due.map(|due| due.to_string()),
        quarantined: row.quarantined,
        last_skip,
        conversation_lock: read_lock_view(queue, &ticket).await?,
    }))
}

/// Lock of a conversation, as webhooks and reads showed it last.
async fn read_lock_view(
    queue: &Queue,
    ticket: &TicketKey,
) -> Result<Option<ConversationLockView>, ApiProblem> {
    match read_lock(queue, ticket).await {
        Ok(lock) => Ok(lock.map(|lock| ConversationLockView {
            since: lock.since.to_string(),
            reason: lock.reason,
        })),
        // A newer release wrote it during a rolling upgrade.
        Err(queue::Error::Newer { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Status of pull requests: from the ticket's triggers, and from the index when the triggers have aged out.
async fn list_pull_request_views(
    queue: &Queue,
    pull_requests: &[PullRequestRef],
    triggers: &[&Trigger],
) -> Result<Vec<PullRequestView>, ApiProblem> {
    let mut views = Vec::with_capacity(pull_requests.len());
    for one in pull_requests {
        let record = queue.pull_requests().get(&one.repository, one.number).await?;
        let standing = ObservedPullRequest::of(one, triggers.iter().copied());
        let status = record.map(|record| record.status);
        let health = match read_health(queue, &one.repository, one.number).await {
            Ok((health, _)) => health,
            // A newer release assessed it during a rolling upgrade.
            Err(queue::Error::Newer { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let thread = TicketKey::GitHub {
            repository: one.repository.clone(),
            number: one.number,
        };
        views.push(PullRequestView {
            conversation_lock: read_lock_view(queue, &thread).await?,
            ..PullRequestView::new(one.clone(), &standing, status, health.as_ref())
        });
    }
    Ok(views)
}

/// Sends a comment to the live runs of a ticket: an answer to a question, a command, or other text. The comment appears in their
/// journals, not on Jira or GitHub.
#[utoipa::path(post, path = "/v1/tickets/{key}/comments", request_body = CommentBody,
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "No run is under way that could read it.")))]
pub(super) async fn comment_ticket(
    InScope(OperatorProof(caller), ticket): InScope<OperatorProof, TicketKey>,
    State(state): State<ApiState>,
    body: Result<Json<CommentBody>, JsonRejection>,
) -> AcceptedAnswer {
    let Json(body) = body?;
    let router = state.router()?;
    let key = TriggerKey::new(format!("comment:{}", uuid::Uuid::new_v4()));
    let said = CommentEvent::from_api(ticket.clone(), key.clone(), caller.name, body.text);
    let outcome = Box::pin(router.take(&said, TriggerChannel::Api)).await?;
    respond_accepted(&ticket, &key, &outcome)
}

/// Deletes all records of a ticket without live runs: triggers, reports, journals, row, ledger, branches and dead letters.
///
/// Content on Jira and GitHub stays. A ticket that is still in the ready status is picked up again.
#[utoipa::path(delete, path = "/v1/tickets/{key}",
    params(("key" = String, Path, description = "Percent-encoded ticket key."), DryRun), security(("bearer" = [])),
    responses((status = 204), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "It has live runs, or as many tickets were forgotten within an hour as may be."),
        (status = 503, body = ProblemView, description = "The reporter, which forgets it, has not answered yet.")))]
pub(super) async fn purge_ticket(
    InScope(AdminProof(caller), ticket): InScope<AdminProof, TicketKey>,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let queue = &state.router()?.queue;
    let row = queue
        .table::<TicketRow>(KeyValueBucket::Tickets)
        .find(&ticket.to_string())
        .await?;
    // An unreadable row must not block the deletion, because deletion is also the repair.
    if matches!(&row, Some(FoundValue::Value(row, _)) if !row.pending.is_empty()) {
        return Err(ApiProblem::Conflict(format!(
            "{ticket} has live runs; stop them first"
        )));
    }
    if dry_run {
        let triggers = queue.triggers().read_each_after(&ticket, 0).await?.len();
        let runs = match &row {
            Some(FoundValue::Value(row, _)) => format!(" and {} runs with their journals", row.runs.len()),
            Some(FoundValue::Unreadable(_)) => " and a row that cannot be read".to_owned(),
            None => String::new(),
        };
        let kept = format!("forget {triggers} triggers of {ticket}{runs}, with all that is stored of it");
        return Ok(respond_to_dry_run(
            (triggers > 0 || row.is_some()).then_some(kept),
        ));
    }
    let task = MaintenanceTask::ForgetTicket {
        ticket: ticket.clone(),
    };
    let outcome = order_maintenance(queue, &caller.name, task).await?;
    check_maintenance_outcome(outcome, || ticket.unknown())?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
