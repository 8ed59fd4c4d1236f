//! What people decide about runs and tickets: stop, try again.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{Reason, RunId, Source, TicketKey, Trigger, TriggerKey};
use queue::Appended;

use super::{
    ApiState, Operator, Problem,
    runs::{find, ticket_key},
    types::{Accepted, ProblemView, RunState},
};
use crate::{kinds::retry::Retry, outcome::Outcome, router::Router};

pub(super) type Answer = Result<(StatusCode, Json<Accepted>), Problem>;

/// Stops one run.
#[utoipa::path(post, path = "/v1/runs/{id}/stop",
    params(("id" = String, Path, description = "Percent-encoded run id.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView), (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "The run is over.")))]
pub(super) async fn stop_run(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Answer {
    let run: RunId = id.parse()?;
    let router = state.router()?;
    if find(router, &run).await?.status == RunState::Finished {
        return Err(Problem::Conflict(format!("run {run} is over")));
    }
    let reason = Reason::StopRequested {
        run: Some(run.clone()),
    };
    Ok(
        append(router, run.ticket(), format!("stop:{run}"), caller.name, reason)
            .await?
            .1,
    )
}

/// Stops every live run of a ticket.
#[utoipa::path(post, path = "/v1/tickets/{key}/stop",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView), (status = 404, body = ProblemView)))]
pub(super) async fn stop_ticket(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(key): Path<String>,
) -> Answer {
    let ticket = ticket_key(&key)?;
    let router = state.router()?;
    if router.queue.triggers().last_sequence(&ticket).await?.is_none() {
        return Err(Problem::NotFound(format!("nothing is known of {ticket}")));
    }
    let key = format!("stop:{}", uuid::Uuid::new_v4());
    Ok(append(
        router,
        &ticket,
        key,
        caller.name,
        Reason::StopRequested { run: None },
    )
    .await?
    .1)
}

/// Tries again: a waiting run at once, a quarantined ticket from where it stands, a failed job from the start.
#[utoipa::path(post, path = "/v1/tickets/{key}/retry",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "Nothing has failed.")))]
pub(super) async fn retry_ticket(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(key): Path<String>,
) -> Answer {
    retry(state.router()?, ticket_key(&key)?, caller.name).await
}

/// The same for every caller.
pub(super) async fn retry(router: &Router, ticket: TicketKey, actor: String) -> Answer {
    let retry = Retry {
        ticket,
        key: TriggerKey::new(format!("retry:{}", uuid::Uuid::new_v4())),
        at: bootstrap::now(),
        by: actor,
    };
    let outcome = Box::pin(router.take(&retry, Source::Api)).await?;
    accepted(&retry.ticket, &retry.key, &outcome)
}

/// The place of a trigger, or why there is none.
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

pub(super) async fn append(
    router: &Router,
    ticket: &TicketKey,
    key: String,
    actor: String,
    reason: Reason,
) -> Result<(Appended, (StatusCode, Json<Accepted>)), Problem> {
    let trigger = Trigger {
        ticket: ticket.clone(),
        key: TriggerKey::new(key.clone()),
        at: bootstrap::now(),
        source: Source::Api,
        actor: Some(actor),
        seen: None,
        reason,
    };
    let Outcome::Appended { appended, .. } = router.append(trigger).await? else {
        return Err(Problem::Internal("a trigger was not appended".to_owned()));
    };
    let (Appended::New(sequence) | Appended::Known(sequence)) = appended;
    let body = Accepted {
        ticket: ticket.to_string(),
        key,
        sequence,
    };
    Ok((appended, (StatusCode::ACCEPTED, Json(body))))
}
