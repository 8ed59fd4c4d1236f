//! Decisions of users about runs and tickets: stop, retry.

use api::types::{Accepted, DryRun, ProblemView, RunState, Would};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{Job, Marks, Reason, Row, RunId, Source, TicketKey, TriggerKey};
use queue::Bucket;

use super::{ApiState, Operator, Problem, auth::InScope, runs::find, ticket_key::OfTicket};
use crate::{
    kinds::{retry::Retry, stopped::Stopped},
    outcome::Outcome,
    router::Router,
};

pub(super) type Answer = Result<(StatusCode, Json<Accepted>), Problem>;

/// Stops one run.
#[utoipa::path(post, path = "/v1/runs/{id}/stop",
    params(("id" = String, Path, description = "Percent-encoded run id."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 404, body = ProblemView), (status = 409, body = ProblemView, description = "The run is over.")))]
pub(super) async fn stop_run(
    InScope(Operator(caller), run): InScope<Operator, RunId>,
    State(state): State<ApiState>,
    dry: Result<Query<DryRun>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(DryRun { dry_run }) = dry?;
    let router = state.router()?;
    let found = find(&state, &caller, &run).await?;
    if found.status == RunState::Finished {
        return Err(Problem::Conflict(format!("run {run} is over")));
    }
    if dry_run {
        return Ok(would([in_words(&run, found.job)]));
    }
    // The key makes repeated stops of a run one trigger.
    let (ticket, key) = (run.ticket().clone(), format!("stop:{run}"));
    Ok(stop(router, ticket, key, Some(run), caller.name)
        .await?
        .into_response())
}

/// Stops every live run of a ticket.
#[utoipa::path(post, path = "/v1/tickets/{key}/stop",
    params(("key" = String, Path, description = "Percent-encoded ticket key."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 404, body = ProblemView)))]
pub(super) async fn stop_ticket(
    InScope(Operator(caller), ticket): InScope<Operator, TicketKey>,
    State(state): State<ApiState>,
    dry: Result<Query<DryRun>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(DryRun { dry_run }) = dry?;
    let router = state.router()?;
    if router.queue.triggers().last_sequence(&ticket).await?.is_none() {
        return Err(ticket.unknown());
    }
    if dry_run {
        let rows = router.queue.table::<Row>(Bucket::Tickets);
        let (row, _) = rows.get(&ticket.to_string()).await?.unwrap_or_default();
        return Ok(would(
            row.pending.iter().map(|live| in_words(&live.run, live.job)),
        ));
    }
    // Each stop of a ticket is a new trigger, because runs may have started since the last one.
    let key = format!("stop:{}", uuid::Uuid::new_v4());
    Ok(stop(router, ticket, key, None, caller.name)
        .await?
        .into_response())
}

async fn stop(router: &Router, ticket: TicketKey, key: String, run: Option<RunId>, by: String) -> Answer {
    let stopped = Stopped {
        ticket,
        key: TriggerKey::new(key),
        at: bootstrap::now(),
        by,
        run,
    };
    let outcome = Box::pin(router.take(&stopped, Source::Api)).await?;
    accepted(&stopped.ticket, &stopped.key, &outcome)
}

fn in_words(run: &RunId, job: Job) -> String {
    format!("stop run {run} ({job})")
}

/// Retries: a waiting run at once, a quarantined ticket from its current state, a failed job from the start.
#[utoipa::path(post, path = "/v1/tickets/{key}/retry",
    params(("key" = String, Path, description = "Percent-encoded ticket key."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "Nothing has failed.")))]
pub(super) async fn retry_ticket(
    InScope(Operator(caller), ticket): InScope<Operator, TicketKey>,
    State(state): State<ApiState>,
    dry: Result<Query<DryRun>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(DryRun { dry_run }) = dry?;
    let router = state.router()?;
    if dry_run {
        return Ok(would([would_retry(router, ticket, caller.name).await?]));
    }
    Ok(retry(router, ticket, caller.name).await?.into_response())
}

/// Retries a ticket on behalf of an API caller.
pub(super) async fn retry(router: &Router, ticket: TicketKey, actor: String) -> Answer {
    let retry = asked_for(ticket, actor);
    let outcome = Box::pin(router.take(&retry, Source::Api)).await?;
    accepted(&retry.ticket, &retry.key, &outcome)
}

/// Description of a retry for a dry run.
pub(super) async fn would_retry(
    router: &Router,
    ticket: TicketKey,
    actor: String,
) -> Result<String, Problem> {
    let retry = asked_for(ticket, actor);
    match Box::pin(router.judge(&retry, Source::Api)).await? {
        Ok(follows) => Ok(match &follows.reason {
            Reason::JobRequested(job) => format!("start {} on {} again", job.job, retry.ticket),
            Reason::Skipped(reason) => {
                format!("leave {} alone: {}", retry.ticket, reason.words(&Marks::PLAIN))
            }
            _ => format!("go on with {} where it waits", retry.ticket),
        }),
        Err(outcome) => Err(Problem::Conflict(outcome.why_nothing().to_owned())),
    }
}

fn asked_for(ticket: TicketKey, by: String) -> Retry {
    Retry {
        ticket,
        // Each retry is a new trigger, because the ticket may fail again.
        key: TriggerKey::new(format!("retry:{}", uuid::Uuid::new_v4())),
        at: bootstrap::now(),
        by,
    }
}

/// Response to a dry run.
pub(super) fn would(lines: impl IntoIterator<Item = String>) -> Response {
    let would = lines.into_iter().collect();
    Json(Would { would }).into_response()
}

/// Response with the sequence of a trigger, or a conflict with the reason why there is no trigger.
pub(super) fn accepted(ticket: &TicketKey, key: &TriggerKey, outcome: &Outcome) -> Answer {
    let Some(sequence) = outcome.sequence() else {
        return Err(Problem::Conflict(outcome.why_nothing().to_owned()));
    };
    let body = Accepted {
        ticket: ticket.to_string(),
        key: key.as_str().to_owned(),
        sequence,
    };
    Ok((StatusCode::ACCEPTED, Json(body)))
}
